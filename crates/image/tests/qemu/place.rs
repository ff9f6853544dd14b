//! A network of its own for machines in QEMU: a bridge in a namespace, DHCP by busybox, and a server for files and reports. Nothing of it
//! touches the machine's own network, and all of it goes when this is dropped.

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

pub(crate) const SERVER: &str = "192.168.77.1:8080";
pub(crate) const ADDRESS: &str = "192.168.77.20";

pub(crate) struct Place {
    namespace: String,
    pub dir: PathBuf,
    dhcp: Option<Child>,
    /// What machines told: `/report/x {"state":"installed"}`.
    pub reports: Arc<Mutex<Vec<String>>>,
}

impl Place {
    /// Serves the files of `dir`, those of `image` below /boot.
    pub(crate) fn new(dir: &Path, image: &Path, mac: &str) -> Result<Place> {
        let namespace = format!("seedling-qemu-{}", std::process::id());
        let mut place =
            Place { namespace, dir: dir.into(), dhcp: None, reports: Arc::new(Mutex::new(Vec::new())) };
        let ns = place.namespace.clone();
        for command in [
            format!("ip netns add {ns}"),
            format!("ip -n {ns} link set lo up"),
            format!("ip -n {ns} link add br0 type bridge"),
            format!("ip -n {ns} addr add 192.168.77.1/24 dev br0"),
            format!("ip -n {ns} link set br0 up"),
            format!("ip netns exec {ns} ip tuntap add tap0 mode tap"),
            format!("ip -n {ns} link set tap0 master br0 up"),
        ] {
            let words: Vec<_> = command.split(' ').collect();
            let said = Command::new(words[0]).args(&words[1..]).output()?;
            ensure!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stderr));
        }
        place.dhcp = Some(place.start_dhcp(mac)?);
        place.serve(image)?;
        Ok(place)
    }

    /// A command inside.
    pub(crate) fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace)).arg(program);
        command
    }

    fn start_dhcp(&self, mac: &str) -> Result<Child> {
        let (config, leases) = (self.dir.join("udhcpd.conf"), self.dir.join("leases"));
        File::create(&leases)?;
        let text = format!(
            "interface br0\nstart {ADDRESS}\nend {ADDRESS}\nstatic_lease {mac} {ADDRESS}\nopt subnet 255.255.255.0\n\
             opt router 192.168.77.1\nopt hostname node-x\nlease_file {}\npidfile {}\n",
            leases.display(),
            self.dir.join("udhcpd.pid").display()
        );
        fs::write(&config, text)?;
        let log = File::create(self.dir.join("udhcpd.log"))?;
        let mut command = self.inside("busybox");
        command.args(["udhcpd", "-f"]).arg(config).stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        command.spawn().context("udhcpd")
    }

    fn serve(&self, image: &Path) -> Result<()> {
        let (path, reports) = (format!("/run/netns/{}", self.namespace), self.reports.clone());
        let (dir, image) = (self.dir.clone(), image.to_path_buf());
        // The namespace is the thread's; the sockets it opens stay there.
        let listener = std::thread::spawn(move || -> Result<TcpListener> {
            setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
            Ok(TcpListener::bind(SERVER)?)
        });
        let listener = listener.join().map_err(|_| anyhow::anyhow!("the server's thread"))??;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (dir, image, reports) = (dir.clone(), image.clone(), reports.clone());
                std::thread::spawn(move || answer(stream, &dir, &image, &reports));
            }
        });
        Ok(())
    }
}

fn answer(stream: TcpStream, dir: &Path, image: &Path, reports: &Mutex<Vec<String>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let words: Vec<_> = line.split_whitespace().map(str::to_string).collect();
    let [method, path, ..] = words.as_slice() else { return Ok(()) };
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    if method == "POST" {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        println!("report: {path} {}", String::from_utf8_lossy(&body));
        if let Ok(mut reports) = reports.lock() {
            reports.push(format!("{path} {}", String::from_utf8_lossy(&body)));
        }
        return Ok(stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?);
    }
    let file = match path.strip_prefix("/boot/") {
        Some(name) => image.join(name),
        None => dir.join(path.trim_start_matches('/')),
    };
    let Ok(mut file) = File::open(file) else {
        return Ok(
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?
        );
    };
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", file.metadata()?.len());
    stream.write_all(head.as_bytes())?;
    std::io::copy(&mut file, &mut stream)?;
    Ok(())
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(dhcp) = &mut self.dhcp {
            let _ = dhcp.kill();
            let _ = dhcp.wait();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).status();
    }
}
