//! Which process listens on a port, as far as this user may see.

use std::fs;
use std::path::Path;

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The process that listens on a port; `None` where it is another user's, or the system does not tell.
pub fn of(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
    let inode = tables.iter().find_map(|table| inode(table, port))?;
    let wanted = format!("socket:[{inode}]");
    fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path()).find(|process| holds(process, &wanted)).map(
        |process| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let id = process.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{} (process {id})", name.trim())
        },
    )
}

/// The socket that listens on a port.
fn inode(table: &str, port: u16) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&format!(":{port:04X}")) && *fields.get(3)? == LISTENS;
        is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

fn holds(process: &Path, socket: &str) -> bool {
    // Beside the processes there are `self` and much else.
    let is_process = process.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
    if !is_process {
        return false;
    }
    let Ok(open) = fs::read_dir(process.join("fd")) else { return false };
    open.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == Path::new(socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_program_is_found_by_the_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = of(port).unwrap();
        assert!(found.ends_with(&format!("(process {})", std::process::id())), "{found}");
    }

    #[test]
    fn a_socket_that_only_uses_the_port_does_not_listen_there() {
        let table = "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode\n\
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 111\n\
            1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 222\n";
        assert_eq!(inode(table, 8_080).as_deref(), Some("222"));
        assert_eq!(inode(table, 8_081), None);
    }
}
