//! Server-sent events, as they arrive in pieces (the HTML standard, section 9.2).

/// More than the transcript of the longest recording takes.
const MOST: usize = 512 << 20;

/// What has arrived of a stream.
#[derive(Debug, Default)]
pub struct Events {
    buffer: Vec<u8>,
    /// So many bytes of the buffer hold no end of an event.
    looked: usize,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerEvent {
    pub name: String,
    pub data: String,
}

impl Events {
    /// Adds a piece. False where an event would be larger than any is.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        self.buffer.extend_from_slice(piece);
        self.buffer.len() <= MOST
    }

    /// The next event that is there as a whole; comments are passed over.
    pub fn next(&mut self) -> Option<ServerEvent> {
        loop {
            let from = self.looked.saturating_sub(1);
            let Some(at) = self.buffer[from..].windows(2).position(|two| two == b"\n\n") else {
                self.looked = self.buffer.len();
                return None;
            };
            let block: Vec<u8> = self.buffer.drain(..from + at + 2).collect();
            self.looked = 0;
            if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                return Some(event);
            }
        }
    }
}

fn parse(block: &str) -> Option<ServerEvent> {
    let mut event = ServerEvent { name: "message".into(), data: String::new() };
    let mut has_data = false;
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event.name = value.into(),
            "data" => {
                if has_data {
                    event.data.push('\n');
                }
                event.data.push_str(value);
                has_data = true;
            }
            _ => {}
        }
    }
    has_data.then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_they_are_cut() {
        let stream =
            "event: segment\ndata: {\"a\": \"é: b\"}\n\n: still here\n\ndata: 1\ndata: 2\n\nevent: late\nda";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                assert!(events.push(piece));
                while let Some(event) = events.next() {
                    found.push((event.name, event.data));
                }
            }
            let expected = [("segment", "{\"a\": \"é: b\"}"), ("message", "1\n2")];
            assert_eq!(found, expected.map(|(name, data)| (name.to_owned(), data.to_owned())), "{size}");
        }
    }
}
