//! nginx before Tomcat: its settings.

use std::net::SocketAddr;

use super::start::{KEEP_ALIVE_S, TLS_SESSION_S, TLS_SESSIONS};

/// Sessions that a megabyte of nginx's cache holds, as its documentation says.
const SESSIONS_A_MEGABYTE: u32 = 4000;
/// Connections that each worker keeps to Tomcat. The buffers of a page hold the longest of the sites: none is written to a file.
const KEPT: u32 = 64;

/// What decides the settings.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// A directory that nginx may write to, with the certificate.
    pub folder: &'a str,
    /// Whether it is started as root, who may be the only user that there is: it would look for another.
    pub as_root: bool,
    /// The guest's data.
    pub data: &'a str,
    /// The plain address.
    pub plain: SocketAddr,
    /// The address with TLS; `None`: none.
    pub tls: Option<SocketAddr>,
    /// Where Tomcat listens.
    pub tomcat: SocketAddr,
    /// Worker processes.
    pub workers: u32,
    /// Connections of clients, of all workers.
    pub connections: u32,
    /// Most files that a worker may have open.
    pub files: u64,
}

/// Connections that a worker is made for: one to Tomcat or to a file beside each of a client's, and some for itself.
pub(super) const fn each(connections: u32) -> u32 {
    connections.saturating_mul(2).saturating_add(512)
}

/// The file with the settings.
pub(super) fn file(of: &Settings<'_>) -> String {
    let Settings { folder, as_root, data, plain, tls, tomcat, workers, connections, files } = of;
    let each = each(*connections);
    let user = if *as_root { "user root;\n" } else { "" };
    let listen_tls = tls.map_or_else(String::new, |tls| {
        let cache = TLS_SESSIONS.div_ceil(SESSIONS_A_MEGABYTE);
        format!(
            "        listen {tls} ssl;\n\
             \x20       ssl_certificate {folder}/certificate.pem;\n\
             \x20       ssl_certificate_key {folder}/key.pem;\n\
             \x20       ssl_protocols TLSv1.2 TLSv1.3;\n\
             \x20       ssl_session_cache shared:tare:{cache}m;\n\
             \x20       ssl_session_timeout {TLS_SESSION_S}s;\n"
        )
    });
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\n\
         {user}\
         worker_processes {workers};\n\
         worker_rlimit_nofile {files};\n\
         pid {folder}/nginx.pid;\n\
         error_log stderr error;\n\
         events {{ worker_connections {each}; }}\n\
         http {{\n\
         \x20   access_log off;\n\
         {temporary}\
         \x20   sendfile on;\n\
         \x20   tcp_nopush on;\n\
         \x20   keepalive_timeout {KEEP_ALIVE_S}s;\n\
         \x20   keepalive_requests 1000000;\n\
         \x20   types {{ image/gif gif; image/jpeg jpg; application/octet-stream bin; }}\n\
         \x20   upstream tomcat {{ server {tomcat}; keepalive {KEPT}; }}\n\
         \x20   server {{\n\
         \x20       listen {plain};\n\
         {listen_tls}\
         \x20       if_modified_since before;\n\
         \x20       location /files/ {{ root {data}; }}\n\
         \x20       location / {{\n\
         \x20           proxy_pass http://tomcat;\n\
         \x20           proxy_http_version 1.1;\n\
         \x20           proxy_buffers 16 16k;\n\
         \x20           proxy_max_temp_file_size 0;\n\
         \x20           proxy_set_header Connection \"\";\n\
         \x20           proxy_set_header Host $host;\n\
         \x20       }}\n\
         \x20   }}\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_tls_only_where_it_is_asked() {
        let mut of = Settings {
            folder: "/tmp/x",
            as_root: false,
            data: "/data",
            plain: "198.18.0.2:8080".parse().unwrap(),
            tls: None,
            tomcat: "127.0.0.1:8081".parse().unwrap(),
            workers: 2,
            connections: 100,
            files: 20_000,
        };
        let plain = file(&of);
        assert!(plain.contains("listen 198.18.0.2:8080;") && !plain.contains("ssl"), "{plain}");
        assert!(!plain.contains("user root"), "{plain}");
        assert!(plain.contains("worker_rlimit_nofile 20000;"), "{plain}");
        assert!(plain.contains("worker_connections 712;") && plain.contains("root /data;"));
        of.tls = Some("198.18.0.2:8443".parse().unwrap());
        let tls = file(&of);
        assert!(tls.contains("listen 198.18.0.2:8443 ssl;") && tls.contains("shared:tare:10m"), "{tls}");
        assert_eq!(tls.matches('{').count(), tls.matches('}').count());
    }
}
