//! What the helper has done so far, as numbers: for Prometheus (`/metrics`) and as a small page (`/stats`), both on the HTTP port.

use seedling_types::ports;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kept over restarts of servers.
#[derive(Clone, Default)]
pub(crate) struct Stats(Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    /// By name and labels.
    counters: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// Port and host, in the order of the inventory.
    backends: BTreeMap<u16, Vec<(String, bool)>>,
    open: BTreeMap<(u16, String), u64>,
}

impl Numbers {
    fn count(&mut self, name: &'static str, labels: String) {
        *self.counters.entry(name).or_default().entry(labels).or_default() += 1;
    }
}

const CONNECTIONS: &str = "seedling_helper_connections_total";

/// A connection through the balancer, as long as it lives.
pub(crate) struct Open {
    stats: Stats,
    at: (u16, String),
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(open) = self.stats.lock().open.get_mut(&self.at) {
            *open = open.saturating_sub(1);
        }
    }
}

impl Stats {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, name: &'static str, label: &str, value: impl Display) {
        self.lock().count(name, format!("{label}=\"{value}\""));
    }

    /// For what is counted by the thousand: no text is made.
    pub(crate) fn add_quickly(&self, name: &'static str, labels: &'static str) {
        let mut numbers = self.lock();
        match numbers.counters.get_mut(name).and_then(|of| of.get_mut(labels)) {
            Some(count) => *count += 1,
            None => numbers.count(name, labels.into()),
        }
    }

    pub(crate) fn backends(&self, port: u16, up: Vec<(String, bool)>) {
        self.lock().backends.insert(port, up);
    }

    pub(crate) fn connection(&self, port: u16, backend: &str) -> Open {
        let at = (port, backend.to_string());
        let mut numbers = self.lock();
        *numbers.open.entry(at.clone()).or_default() += 1;
        let labels = format!("port=\"{port}\",backend=\"{backend}\"");
        numbers.count(CONNECTIONS, labels);
        drop(numbers);
        Open { stats: self.clone(), at }
    }

    /// Prometheus's text format.
    pub(crate) fn metrics(&self) -> String {
        let numbers = self.lock();
        let mut text = String::new();
        for (name, of) in &numbers.counters {
            let _ = writeln!(text, "# TYPE {name} counter");
            for (labels, count) in of {
                let _ = writeln!(text, "{name}{{{labels}}} {count}");
            }
        }
        text += "# TYPE seedling_helper_backend_up gauge\n";
        for (port, members) in &numbers.backends {
            for (host, up) in members {
                let _ = writeln!(
                    text,
                    "seedling_helper_backend_up{{port=\"{port}\",backend=\"{host}\"}} {}",
                    u8::from(*up)
                );
            }
        }
        text += "# TYPE seedling_helper_connections_open gauge\n";
        for ((port, host), open) in &numbers.open {
            let _ = writeln!(
                text,
                "seedling_helper_connections_open{{port=\"{port}\",backend=\"{host}\"}} {open}"
            );
        }
        text
    }

    /// The same for people. Names are DNS labels, so nothing needs escaping.
    pub(crate) fn page(&self) -> String {
        let numbers = self.lock();
        let mut rows = String::new();
        for (port, members) in &numbers.backends {
            for (host, up) in members {
                let open = numbers.open.get(&(*port, host.clone())).copied().unwrap_or_default();
                let labels = format!("port=\"{port}\",backend=\"{host}\"");
                let all = numbers.counters.get(CONNECTIONS).and_then(|of| of.get(&labels)).unwrap_or(&0);
                let (class, word) = if *up { ("up", "up") } else { ("down", "down") };
                let _ = writeln!(
                    rows,
                    "<tr><td>{port}<td>{host}<td class={class}>{word}<td class=n>{open}<td class=n>{all}"
                );
            }
        }
        let mut others = String::new();
        for (name, of) in numbers.counters.iter().filter(|(name, _)| **name != CONNECTIONS) {
            for (labels, count) in of {
                let _ = writeln!(others, "<tr><td>{name}<td>{}<td class=n>{count}", labels.replace('"', ""));
            }
        }
        format!(
            "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=5><title>Seedling helper</title>\n\
             <style>body{{font:15px sans-serif;margin:2em}}td,th{{padding:.2em 1em;text-align:left}}.n{{text-align:right}}\
             .up{{color:#070}}.down{{color:#b00}}</style>\n<h1>Seedling helper</h1>\n\
             <table><tr><th>port<th>backend<th>state<th>open<th>so far\n{rows}</table>\n\
             <table><tr><th>what<th>which<th>so far\n{others}</table>\n\
             <p>For Prometheus: <a href=/metrics>/metrics</a> on port {}.\n",
            ports::HELPER_HTTP
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_prometheus_and_for_people() {
        let stats = Stats::default();
        stats.backends(443, vec![("worker-0".into(), true), ("worker-1".into(), false)]);
        let first = stats.connection(443, "worker-0");
        drop(stats.connection(443, "worker-0"));
        stats.add("seedling_helper_dhcp_messages_total", "message", "ACK");
        stats.add("seedling_helper_dhcp_messages_total", "message", "ACK");
        let text = stats.metrics();
        for line in [
            "# TYPE seedling_helper_dhcp_messages_total counter",
            "seedling_helper_dhcp_messages_total{message=\"ACK\"} 2",
            "seedling_helper_backend_up{port=\"443\",backend=\"worker-1\"} 0",
            "seedling_helper_connections_total{port=\"443\",backend=\"worker-0\"} 2",
            "seedling_helper_connections_open{port=\"443\",backend=\"worker-0\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(stats.page().contains("<tr><td>443<td>worker-0<td class=up>up<td class=n>1<td class=n>2"));
        drop(first);
        assert!(stats.metrics().contains("connections_open{port=\"443\",backend=\"worker-0\"} 0"));
    }
}
