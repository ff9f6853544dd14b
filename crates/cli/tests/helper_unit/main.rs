//! The helper as a systemd unit, on a machine with a systemd of its own: a lab's container, which fetches this program as its node software.
//! `helper init`, `check`, `install`, `status` and `uninstall` run there; the helper's network is a wire of its own, with this machine's
//! clients (udhcpc, dig, curl) at the other end.
//!
//! Needs root and the node image, so it runs with `--ignored` only (`make helper-unit`).

mod site;

use anyhow::{Context, Result, ensure};
use seedling_lab::{Labs, Options, Pace, down, up};
use serde_json::Value;
use site::{ADDRESS, HERE, LARGE_BYTES, MAC, Site, UNIT, sh, spec};
use std::path::Path;

const BOOTSTRAP: &str = "10.99.0.10";
/// systemd's own scale, 0 (nothing is allowed) to 10; a unit without a sandbox has 9.6.
const MOST_EXPOSED: f64 = 3.0;
/// DAC_OVERRIDE, NET_BIND_SERVICE, NET_ADMIN, NET_RAW; and DAC_READ_SEARCH, which a lab's machine has not.
const NEEDED: u64 = 0x3402;
const ALLOWED: u64 = NEEDED | 0x4;

fn main() -> Result<()> {
    if !std::env::args().any(|arg| arg == "--ignored") {
        println!("skipped: needs root and a node image (--ignored)");
        return Ok(());
    }
    // On a real disk: /tmp may be too small, or an overlay.
    let folder = tempfile::Builder::new().prefix("seedling-unit-").tempdir_in("/var/tmp")?;
    let labs = Labs { state: folder.path().join("state"), ..Labs::from_env() };
    let name = format!("unit-{}", std::process::id());
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(story(&labs, folder.path(), &name));
    let _ = sh(&format!("ip netns del {name}-client"));
    runtime.block_on(down(&labs, &name, &|_| ()))?;
    outcome?;
    println!("test result: ok. 8 passed; 0 failed");
    Ok(())
}

async fn story(labs: &Labs, folder: &Path, name: &str) -> Result<()> {
    let program = Path::new(env!("CARGO_BIN_EXE_seedling"));
    let options = Options { helper_program: program.into(), switch_on: true, pace: Pace::Free };
    let lab = up(labs, spec(folder, name, program)?, &options, &|text| println!("  {text}")).await?;
    let site = Site::new(&lab, name).await?;
    let outcome = site.checks().await;
    if outcome.is_err() {
        let journal = site.on("journalctl --no-pager -n 60 -u seedling-helper; systemctl status --no-pager seedling-helper; true");
        eprintln!("{}", journal.await.unwrap_or_default());
    }
    outcome
}

impl Site {
    async fn checks(&self) -> Result<()> {
        self.is_written_checked_and_installed().await?;
        self.serves().await?;
        self.is_confined().await?;
        self.reloads_without_a_gap().await?;
        self.comes_back_when_it_is_killed().await?;
        self.is_installed_again_without_harm().await?;
        self.comes_back_with_the_machine().await?;
        self.leaves_when_it_is_told().await
    }

    async fn is_written_checked_and_installed(&self) -> Result<()> {
        self.on("mkdir /etc/seedling && seedling helper init --dir /root/site --domain site.example.com --interface helper0 \
                 --image /var/lib/seedling/boot --output /etc/seedling/helper.yaml")
            .await?;
        // An address for strangers, too; and no questions to the lab's own DNS.
        self.on("sed -i 's/^# pool: /pool: /; s/^forwarders:/# forwarders:/' /etc/seedling/helper.yaml")
            .await?;
        self.check_finds_nothing("before it runs").await?;
        self.on("seedling helper install").await?;
        self.check_finds_nothing("while it runs").await?;
        println!("ok: init, check and install");
        Ok(())
    }

    async fn check_finds_nothing(&self, when: &str) -> Result<()> {
        let report = self.on("seedling helper check --output json || true").await?;
        let report: Value = serde_json::from_str(&report).with_context(|| report.clone())?;
        ensure!(report["ok"] == true, "{when}: {report:#}");
        Ok(())
    }

    /// Ports below 1024, broadcasts on an interface, files below /root and /var: each needs something that a sandbox may take.
    async fn serves(&self) -> Result<()> {
        let lease = self.client("busybox udhcpc -f -q -n -t 10 -i eth0 -s /bin/true")?;
        ensure!(lease.contains(ADDRESS), "DHCP gave another address: {lease}");
        self.client(&format!("ip addr add {ADDRESS}/24 dev eth0 && ip addr add {BOOTSTRAP}/24 dev eth0"))?;
        for (question, answer) in [
            (format!("dig +short @{HERE} api.site.example.com"), HERE),
            (format!("dig +short +tcp @{HERE} worker-0.site.example.com"), ADDRESS),
            (format!("curl -sS tftp://{HERE}/undionly.kpxe"), "undionly.kpxe"),
            (format!("curl -sS --interface {ADDRESS} http://{HERE}:8080/boot/vmlinuz"), "vmlinuz"),
            (
                format!("curl -sS --interface {ADDRESS} http://{HERE}:8080/ign/{MAC}"),
                "{\"role\": \"worker\"}",
            ),
            (format!("curl -sS http://{HERE}:5000/v2/"), "{}"),
            (format!("curl -sS http://{HERE}:8080/healthz"), "ok"),
        ] {
            let said = self.client(&question)?;
            ensure!(said.trim() == answer, "{question}: {said:?}, not {answer:?}");
        }
        for port in [6443, 22623, 80, 443] {
            self.client(&connect(port))?;
        }
        let status = self.on("seedling helper status").await?;
        ensure!(status.contains("worker-0") && status.contains("bootstrap"), "{status}");
        println!("ok: DHCP, DNS, TFTP, HTTP, registry and load balancer\n{status}");
        Ok(())
    }

    async fn is_confined(&self) -> Result<()> {
        let pid = self.pid().await?;
        for forbidden in ["/usr/x", "/etc/x", "/root/x", "/var/lib/seedling/boot/x"] {
            let tried = self
                .on(&format!("! nsenter -t {pid} -m touch {forbidden} 2>/dev/null && echo refused"))
                .await?;
            ensure!(tried == "refused", "it may write {forbidden}: {tried}");
        }
        let own = "/var/lib/seedling/helper/x";
        let may = format!("nsenter -t {pid} -m touch {own} && rm {own} && echo may");
        ensure!(self.on(&may).await? == "may", "it cannot write where it must");
        let bounding = self.on(&format!("sed -n 's/^CapBnd:\\t//p' /proc/{pid}/status")).await?;
        let bounding = u64::from_str_radix(&bounding, 16)?;
        ensure!(bounding & NEEDED == NEEDED && bounding & !ALLOWED == 0, "capabilities {bounding:x}");
        ensure!(
            self.on(&format!("grep -c ^Seccomp:.2 /proc/{pid}/status")).await? == "1",
            "no filter of system calls"
        );
        let verdict = self.on(&format!("systemd-analyze --no-pager security {UNIT} | tail -n 1")).await?;
        let exposure = verdict.split_whitespace().find_map(|word| word.parse::<f64>().ok());
        ensure!(exposure.is_some_and(|exposure| exposure <= MOST_EXPOSED), "{verdict}");
        println!("ok: {}", verdict.trim_start_matches(|c: char| !c.is_ascii_alphabetic()));
        Ok(())
    }

    /// Another machine in helper.yaml, while one fetches a file and another talks to the balancer.
    async fn reloads_without_a_gap(&self) -> Result<()> {
        let pid = self.pid().await?;
        let mut download = self.download()?;
        self.on("sed -i '/name: worker-0/a\\  - {name: worker-1, role: worker, mac: \"52:54:00:00:99:22\", address: 10.99.0.22}' /etc/seedling/helper.yaml \
                 && systemctl reload seedling-helper")
            .await?;
        let digest = self.on("sha256sum < /etc/seedling/helper.yaml | cut -d' ' -f1").await?;
        self.until(
            "the new config to be in use",
            &format!("grep -q {digest} /run/seedling-helper/ready && echo running"),
        )
        .await?;
        let said = self.client(&format!("dig +short @{HERE} worker-1.site.example.com"))?;
        ensure!(said.trim() == "10.99.0.22", "the new machine has no name: {said}");
        ensure!(
            download.try_wait()?.is_none(),
            "the download was over before anything happened: it shows nothing"
        );
        let out = download.wait_with_output()?;
        let got = String::from_utf8_lossy(&out.stdout).into_owned();
        ensure!(got == LARGE_BYTES.to_string(), "{got} bytes: {}", String::from_utf8_lossy(&out.stderr));
        ensure!(self.pid().await? == pid, "it was started again");
        println!("ok: read its config again in the midst of a download");
        Ok(())
    }

    /// What it gave away it does not give again, and a stranger keeps its address.
    async fn comes_back_when_it_is_killed(&self) -> Result<()> {
        self.on("seedling helper open bootstrap --config /etc/seedling/helper.yaml").await?;
        let code = |path: &str| {
            format!(
                "curl -s -o /dev/null -w '%{{http_code}}' --interface {BOOTSTRAP} http://{HERE}:8080{path}"
            )
        };
        let fetch = code("/ign/52:54:00:00:99:10");
        ensure!(self.client(&fetch)? == "200", "the door that a person opened is shut");
        let lease = self.stranger()?;
        let pid = self.pid().await?;
        self.until(
            "the door to shut",
            "grep -q '\"served\":[0-9]' /var/lib/seedling/helper/doors/bootstrap.json && echo running",
        )
        .await?;
        self.on(&format!("kill -KILL {pid}")).await?;
        let back = format!(
            "[ \"$(systemctl show -P MainPID {UNIT})\" != {pid} ] && grep -qx \"$(systemctl show -P MainPID {UNIT})\" /run/seedling-helper/ready && echo running"
        );
        self.until("systemd to start it again", &back).await?;
        ensure!(self.client(&fetch)? == "410", "given a second time");
        let again = self.stranger()?;
        ensure!(again == lease, "the stranger had {lease} and has {again}");
        let said = self.on("grep -c '\"event\":\"restarted\",\"what\":\"the helper\"' /var/lib/seedling/helper/events.jsonl").await?;
        ensure!(said == "1", "its log tells of {said} restarts");
        println!("ok: killed, and started again with what it knew");
        Ok(())
    }

    /// As after an upgrade.
    async fn is_installed_again_without_harm(&self) -> Result<()> {
        let pid = self.pid().await?;
        self.on("seedling helper install").await?;
        ensure!(self.pid().await? != pid, "the one before still runs");
        ensure!(self.client(&format!("curl -sS http://{HERE}:8080/healthz"))? == "ok");
        println!("ok: installed a second time");
        Ok(())
    }

    /// The wire is plugged in again by hand, later than the unit starts: it must not give up.
    async fn comes_back_with_the_machine(&self) -> Result<()> {
        ensure!(self.on("systemctl is-enabled seedling-helper").await? == "enabled");
        self.on("ip link set helper0 down && ip addr flush dev helper0 && systemctl restart seedling-helper")
            .await?;
        let tries = format!("[ \"$(systemctl show -P NRestarts {UNIT})\" -ge 2 ] && echo running");
        self.until("it to try without its address", &tries).await?;
        self.on(&format!("ip addr add {HERE}/24 dev helper0 && ip link set helper0 up")).await?;
        self.until(
            "the helper to listen",
            "curl -sf http://10.99.0.1:8080/healthz >/dev/null && echo running",
        )
        .await?;
        println!("ok: waited for its address");
        Ok(())
    }

    async fn leaves_when_it_is_told(&self) -> Result<()> {
        self.on("seedling helper uninstall").await?;
        for gone in ["/etc/systemd/system/seedling-helper.service", "/run/seedling-helper/ready"] {
            ensure!(self.on(&format!("[ -e {gone} ] && echo there || echo gone")).await? == "gone", "{gone}");
        }
        let refused = self.client(&format!("! {} 2>/dev/null && echo refused", connect(8080)))?;
        ensure!(refused.trim() == "refused", "somebody still listens");
        let kept =
            self.on("ls /etc/seedling/helper.yaml /var/lib/seedling/helper/events.jsonl | wc -l").await?;
        ensure!(kept == "2", "its config and its log are to stay");
        let twice = self.on("seedling helper uninstall 2>&1").await?;
        ensure!(twice.contains("nothing to do"), "{twice}");
        println!("ok: uninstalled; config and log are still there");
        Ok(())
    }
}

/// Succeeds if somebody listens.
fn connect(port: u16) -> String {
    format!("timeout 2 bash -c ': > /dev/tcp/{HERE}/{port}'")
}
