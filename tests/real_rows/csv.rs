//! CSV as PostgreSQL writes it.

/// Records of fields; an unquoted empty field is NULL.
pub fn records(text: &str) -> Vec<Vec<Option<String>>> {
    let mut records = Vec::new();
    let mut fields = Vec::new();
    let (mut field, mut quoted) = (String::new(), false);
    let mut characters = text.chars().peekable();
    let mut inside = false;
    while let Some(character) = characters.next() {
        match character {
            '"' if inside && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => {
                inside = !inside;
                quoted = true;
            }
            ',' | '\n' if !inside => {
                let value = std::mem::take(&mut field);
                fields.push((quoted || !value.is_empty()).then_some(value));
                quoted = false;
                if character == '\n' {
                    records.push(std::mem::take(&mut fields));
                }
            }
            other => field.push(other),
        }
    }
    assert!(fields.is_empty() && field.is_empty(), "the last line has no end");
    records
}

#[test]
fn null_and_the_empty_text_are_told_apart() {
    let read = records("a,b\n,\"\"\n\"x\"\"y\",\"1\n2\"\n");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(read, [vec![text("a"), text("b")], vec![None, text("")], vec![text("x\"y"), text("1\n2")]]);
}
