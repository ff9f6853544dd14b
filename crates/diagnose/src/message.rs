//! A person's own words find a rule: its messages are compared with the text, word by word. Pure.

use crate::rules::{RULES, Rule};
use std::collections::BTreeSet;

/// Words that are in every message, and say nothing.
const COMMON: [&str; 40] = [
    "the", "a", "an", "is", "are", "of", "to", "in", "on", "for", "not", "no", "and", "or", "it", "its",
    "was", "my", "i", "at", "from", "with", "error", "failed", "get", "https", "http", "test", "seedling",
    "level", "msg", "info", "cluster", "node", "has", "have", "be", "this", "that", "does",
];

/// The best first; only those that share a whole message with the text, or half of its telling words.
pub fn matches(text: &str) -> Vec<&'static Rule> {
    let lower = text.to_lowercase();
    let said = telling(&lower);
    let mut found: Vec<(usize, &Rule)> =
        RULES.iter().map(|rule| (score(rule, &lower, &said), rule)).collect();
    found.retain(|(score, _)| *score > 0);
    // Equal ones stay in the chain's order.
    found.sort_by_key(|(score, _)| usize::MAX - score);
    let best = found.first().map_or(0, |(score, _)| *score);
    found.into_iter().filter(|(score, _)| *score * 2 >= best).map(|(_, rule)| rule).take(3).collect()
}

fn score(rule: &Rule, lower: &str, said: &BTreeSet<&str>) -> usize {
    let of_message = |message: &&str| {
        let message = message.to_lowercase();
        let words = telling(&message);
        let shared = words.intersection(said).count();
        match lower.contains(&message) {
            true => 1000 + message.len(),
            false if shared * 2 > words.len() => shared * 100 / words.len() * shared,
            false => 0,
        }
    };
    rule.messages.iter().map(of_message).max().unwrap_or_default()
}

fn telling(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    words.filter(|word| !COMMON.contains(word)).collect()
}
