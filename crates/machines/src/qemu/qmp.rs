//! QEMU's own socket: one command, one answer. Events in between are passed over.

use crate::run::{MachineError, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// A QEMU that does not answer within this is on its knees.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(crate) async fn ask(socket: &Path, name: &str, command: &'static str) -> Result<Value> {
    let failed = |complaint: String| MachineError::Qmp { name: name.into(), command, complaint };
    let answer = tokio::time::timeout(ANSWER_WITHIN, exchange(socket, command)).await;
    match answer {
        Ok(Ok(answer)) => reply(&answer).map_err(failed),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {} s", ANSWER_WITHIN.as_secs()))),
    }
}

async fn exchange(socket: &Path, command: &str) -> std::io::Result<Value> {
    let (read, mut write) = UnixStream::connect(socket).await?.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut answer = Value::Null;
    // Its greeting comes first, and it takes no command before this one.
    for execute in ["qmp_capabilities", command] {
        write.write_all(format!("{}\n", json!({ "execute": execute })).as_bytes()).await?;
        answer = loop {
            let Some(line) = lines.next_line().await? else {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            };
            match serde_json::from_str::<Value>(&line) {
                Ok(said) if is_answer(&said) => break said,
                _ => continue,
            }
        };
    }
    Ok(answer)
}

fn is_answer(said: &Value) -> bool {
    said.get("return").is_some() || said.get("error").is_some()
}

fn reply(answer: &Value) -> Result<Value, String> {
    match answer.get("error") {
        Some(error) => Err(error["desc"].as_str().unwrap_or("an error without words").to_string()),
        None => Ok(answer["return"].clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_and_events_are_no_answers() {
        for (said, want) in [
            (json!({"QMP": {"version": {}}}), None),
            (json!({"event": "STOP"}), None),
            (json!({"return": {"status": "running"}}), Some(Ok(json!({"status": "running"})))),
            (json!({"error": {"class": "GenericError", "desc": "no"}}), Some(Err("no".to_string()))),
        ] {
            assert_eq!(is_answer(&said).then(|| reply(&said)), want);
        }
    }
}
