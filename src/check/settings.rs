//! Settings that contradict each other, or that say more than one may have meant. Pure.

use super::finding::{Area, Finding};
use crate::config::{Config, Contradiction};
use crate::model::{EscapedText, TopicField};

const AREA: Area = Area::Settings;

pub(super) fn findings(config: &Config, contradictions: &[Contradiction]) -> Vec<Finding> {
    let rules = &config.target.rules;
    let text = format!(
        "key prefix \"{}\", message limit {}, default TTL {} s, field {}",
        EscapedText(&config.target.key_prefix),
        rules.message_limit,
        rules.default_ttl.as_secs(),
        match rules.topic_field {
            TopicField::TopicName => "topicName",
            TopicField::Topic => "topic",
        }
    );
    let mut found = vec![Finding::ok(AREA, "in_use", text)];
    for Contradiction { name, used, used_from, other, other_from } in contradictions {
        let text = format!("{name} is {used} ({used_from}), and {other} in {other_from}");
        found.push(
            Finding::warning(AREA, "contradiction", EscapedText(&text).to_string())
                .mend(format!("give --{name} the value that the broker has, and leave the other out")),
        );
    }
    if rules.topic_field == TopicField::Topic {
        found.push(
            Finding::warning(
                AREA,
                "topic_field",
                "topic is needed by a target of 2.0.0 alone, which passes over live messages after the packet ids of a session wrap",
            )
            .mend("have 2.1.0 or later as the target, with --topic-field topicName"),
        );
    }
    found
}
