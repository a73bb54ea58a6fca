//! Text in columns of a terminal. What terminals disagree about counts as two columns.

/// Columns of a line.
pub(super) const LINE: usize = 100;
/// Characters of the frame itself, one column each.
const OWN: &str = "│≠…─";

/// Columns that a text takes at most.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(character: char) -> usize {
    if character.is_ascii() || OWN.contains(character) { 1 } else { 2 }
}

/// The beginning of a text, with an ellipsis where it is longer than `most` columns.
pub(super) fn beginning(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = text.chars().take_while(|&character| {
        used += width_of(character);
        used < most
    });
    fits.collect::<String>() + "…"
}

/// The end of a number, with an ellipsis where it is longer than `most` columns: the last digits tell neighbours apart.
pub(super) fn end(number: &str, most: usize) -> String {
    let count = number.chars().count();
    if count <= most {
        return number.to_owned();
    }
    let last: String = number.chars().skip(count + 1 - most).collect();
    format!("…{last}")
}

/// A text over as many lines as it takes, each at most `most` columns: broken at spaces, and within a word that is longer
/// than a line.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let mut used = 0;
        let over = rest.char_indices().find(|&(_, character)| {
            used += width_of(character);
            used > most
        });
        let Some((over, character)) = over else { break };
        let (fits, space) = (&rest[..over], character == ' ');
        match fits.rfind(' ').filter(|&at| !fits[..at].trim().is_empty()) {
            _ if space => {
                lines.push(fits.to_owned());
                rest = &rest[over + 1..];
            }
            Some(at) => {
                lines.push(fits[..at].to_owned());
                rest = &rest[at + 1..];
            }
            None => {
                lines.push(fits.to_owned());
                rest = &rest[over..];
            }
        }
    }
    lines.push(rest.to_owned());
    lines
}

/// A text cut into pieces of `most` columns, so that the pieces together are the text.
pub(super) fn pieces(text: &str, most: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for character in text.chars() {
        used += width_of(character);
        if used > most {
            pieces.push(String::new());
            used = width_of(character);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_spaces_and_only_then_within_a_word() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one twothree", 7), ["one", "twothre", "e"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("😀😀😀", 5), ["😀😀", "😀"]);
    }

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        let text = "a  b😀😀 c".repeat(20);
        let pieces = pieces(&text, 7);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.iter().all(|piece| width(piece) <= 7));
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!((beginning("abcdef", 4), beginning("abcd", 4), beginning("😀😀", 3)), ("abc…".into(), "abcd".into(), "😀…".into()));
        assert_eq!((end("123456", 4), end("1234", 4)), ("…456".into(), "1234".into()));
    }
}
