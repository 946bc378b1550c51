//! The part of HTTP/1.1 that a media element and `fetch` need, with one request
//! per connection.

use std::io::{self, Read, Write};
use std::ops::Range;

/// Most bytes of a request's head. The window's requests are far smaller.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// Origins of the window's pages on Linux, Windows and macOS.
const WINDOW_ORIGINS: [&str; 3] = ["tauri://localhost", "http://tauri.localhost", "https://tauri.localhost"];

/// The fields of a request that matter here.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) range: Option<String>,
}

impl HttpRequest {
    /// Reads a request; `None` if the connection sends none or an invalid one.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let mut piece = [0; 2048];
        loop {
            let count = from.read(&mut piece)?;
            if count == 0 {
                return Ok(None);
            }
            head.extend_from_slice(&piece[..count]);
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            match request.parse(&head) {
                Ok(httparse::Status::Complete(_)) => return Ok(Some(Self::of(&request))),
                Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => {}
                _ => return Ok(None),
            }
        }
    }

    fn of(request: &httparse::Request<'_, '_>) -> Self {
        let header = |name: &str| {
            let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            Some(String::from_utf8_lossy(header.value).trim().to_owned())
        };
        Self {
            method: request.method.unwrap_or_default().into(),
            path: request.path.unwrap_or_default().into(),
            host: header("host"),
            origin: header("origin"),
            range: header("range"),
        }
    }

    /// Whether the request comes from a page of the window. Other pages send their
    /// origin, or another host name if DNS rebinding leads them here.
    pub(crate) fn is_of_the_window(&self, host: &str) -> bool {
        let origin = self.origin.as_deref();
        self.host.as_deref() == Some(host) && origin.is_none_or(|origin| WINDOW_ORIGINS.contains(&origin))
    }

    /// The bytes that are requested, of `total`.
    pub(crate) fn range(&self, total: u64) -> RequestedRange {
        let Some(wanted) = self.range.as_deref().and_then(|range| range.strip_prefix("bytes=")) else {
            return RequestedRange::Whole;
        };
        let Some((first, last)) = wanted.split_once('-') else { return RequestedRange::Whole };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (start, end) = match (number(first), number(last)) {
            (Some(start), Some(last)) if last >= start => (start, last.saturating_add(1).min(total)),
            (Some(start), None) if last.trim().is_empty() => (start, total),
            (None, Some(count)) if first.trim().is_empty() => (total - count.min(total), total),
            // The whole is a valid answer to several ranges and to invalid ones (RFC 9110, 14.2).
            _ => return RequestedRange::Whole,
        };
        if start < end { RequestedRange::Part(start..end) } else { RequestedRange::Unsatisfiable }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// The range lies behind the end.
    Unsatisfiable,
}

/// Writes the head of a response. `more` are further header lines.
pub(crate) fn write_head(
    out: &mut impl Write,
    status: &str,
    origin: Option<&str>,
    length: u64,
    more: &[String],
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nVary: Origin\r\n"
    );
    if let Some(origin) = origin {
        head.push_str(&format!("Access-Control-Allow-Origin: {origin}\r\n"));
    }
    for line in more {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    out.write_all(head.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_in_rfc_9110() {
        for (range, expected) in [
            (None, RequestedRange::Whole),
            (Some("bytes=0-"), RequestedRange::Part(0..1000)),
            (Some("bytes=0-0"), RequestedRange::Part(0..1)),
            (Some("bytes=990-5000"), RequestedRange::Part(990..1000)),
            (Some("bytes=-10"), RequestedRange::Part(990..1000)),
            (Some("bytes=-5000"), RequestedRange::Part(0..1000)),
            (Some("bytes=1000-"), RequestedRange::Unsatisfiable),
            (Some("bytes=-0"), RequestedRange::Unsatisfiable),
            (Some("bytes=7-3"), RequestedRange::Whole),
            (Some("bytes=0-1,5-6"), RequestedRange::Whole),
            (Some("seconds=0-1"), RequestedRange::Whole),
            (Some("bytes=x-"), RequestedRange::Whole),
        ] {
            let request = HttpRequest { range: range.map(str::to_owned), ..HttpRequest::default() };
            assert_eq!(request.range(1000), expected, "{range:?}");
        }
    }
}
