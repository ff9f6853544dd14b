//! A person's own words find a rule: its messages are compared with the text, word by word. Pure.

use crate::rules::{RULES, Rule};
use std::collections::BTreeSet;

/// Words that are in every message, and say nothing.
const COMMON: [&str; 40] = [
    "the", "a", "an", "is", "are", "of", "to", "in", "on", "for", "not", "no", "and", "or", "it", "its",
    "was", "my", "i", "at", "from", "with", "error", "failed", "get", "https", "http", "test", "seedling",
    "level", "msg", "info", "cluster", "node", "has", "have", "be", "this", "that", "does",
];

/// A word that so many rules have at most leads to them by itself.
const RARE: usize = 2;

/// The best first; only those that share a whole message with the text, or half of its telling words. Where there are none, those that share
/// a rare word.
pub fn matches(text: &str) -> Vec<&'static Rule> {
    let lower = text.to_lowercase();
    let said = telling(&lower);
    let mut found: Vec<(usize, &Rule)> =
        RULES.iter().map(|rule| (score(rule, &lower, &said), rule)).collect();
    found.retain(|(score, _)| *score > 0);
    if found.is_empty() {
        return by_rare_words(&said);
    }
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

fn by_rare_words(said: &BTreeSet<&str>) -> Vec<&'static Rule> {
    let has =
        |rule: &Rule, word: &str| rule.messages.iter().any(|m| telling(&m.to_lowercase()).contains(word));
    let of_word =
        |word: &&str| -> Vec<&'static Rule> { RULES.iter().filter(|rule| has(rule, word)).collect() };
    let words = said.iter().filter(|word| word.len() > 4);
    let mut rare: Vec<_> = words.map(|word| (of_word(word), word.len())).collect();
    rare.retain(|(rules, _)| rules.len() <= RARE);
    // The fewest have it, and the longer it is, the more it tells.
    rare.sort_by_key(|(rules, length)| (rules.len(), usize::MAX - length));
    let mut found: Vec<&'static Rule> = rare.into_iter().flat_map(|(rules, _)| rules).collect();
    found.dedup_by_key(|rule| rule.name);
    found.truncate(3);
    found
}

fn telling(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    words.filter(|word| !COMMON.contains(word)).collect()
}
