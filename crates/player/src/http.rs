//! As much of HTTP/1.1 as a media element and `fetch` need: one request for
//! each connection.

use std::io::{self, Read, Write};
use std::ops::Range;

/// Longer heads are nobody's that we know.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// What a page of the window calls itself, on the systems that there are.
const WINDOWS: [&str; 3] = ["tauri://localhost", "http://tauri.localhost", "https://tauri.localhost"];

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) range: Option<String>,
}

impl Request {
    /// `None` for what is no request.
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

    /// Whether a page of the window asks, as far as can be told: a page from
    /// elsewhere states where it is from, or was led here by another name.
    pub(crate) fn is_of_the_window(&self, host: &str) -> bool {
        let origin = self.origin.as_deref();
        self.host.as_deref() == Some(host) && origin.is_none_or(|origin| WINDOWS.contains(&origin))
    }

    /// The bytes that are asked for.
    pub(crate) fn range(&self, total: u64) -> Asked {
        let Some(wanted) = self.range.as_deref().and_then(|range| range.strip_prefix("bytes=")) else {
            return Asked::Whole;
        };
        let Some((first, last)) = wanted.split_once('-') else { return Asked::Whole };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (start, end) = match (number(first), number(last)) {
            (Some(start), Some(last)) if last >= start => (start, last.saturating_add(1).min(total)),
            (Some(start), None) if last.trim().is_empty() => (start, total),
            (None, Some(count)) if first.trim().is_empty() => (total - count.min(total), total),
            // Several ranges, or none that can be understood: the whole is allowed as an answer.
            _ => return Asked::Whole,
        };
        if start < end { Asked::Part(start..end) } else { Asked::Nothing }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Whole,
    Part(Range<u64>),
    /// Nothing of it exists.
    Nothing,
}

/// Writes the head of an answer. `more`: whole lines.
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
    fn ranges_are_read_as_rfc_9110_has_them() {
        for (range, expected) in [
            (None, Asked::Whole),
            (Some("bytes=0-"), Asked::Part(0..1000)),
            (Some("bytes=0-0"), Asked::Part(0..1)),
            (Some("bytes=990-5000"), Asked::Part(990..1000)),
            (Some("bytes=-10"), Asked::Part(990..1000)),
            (Some("bytes=-5000"), Asked::Part(0..1000)),
            (Some("bytes=1000-"), Asked::Nothing),
            (Some("bytes=-0"), Asked::Nothing),
            (Some("bytes=7-3"), Asked::Whole),
            (Some("bytes=0-1,5-6"), Asked::Whole),
            (Some("seconds=0-1"), Asked::Whole),
            (Some("bytes=x-"), Asked::Whole),
        ] {
            let request = Request { range: range.map(str::to_owned), ..Request::default() };
            assert_eq!(request.range(1000), expected, "{range:?}");
        }
    }
}
