//! What the user should know about memory: a code to branch on, a severity, the
//! figures and a sentence made of them.

use serde::{Deserialize, Serialize};

pub use crate::message::{Code, Message};

/// Where every notice is explained: symptom, diagnosis, remedy.
pub const HELP_PAGE: &str = "docs/troubleshooting.md";

/// A notice's figures, names and amounts, by the names that its message gives them.
pub type Data = serde_json::Map<String, serde_json::Value>;

/// What the user should know about memory. On its way to a host it becomes a
/// `transcript::Notice` (`wire::notice`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What happened.
    pub code: Code,
    /// What it means for the result.
    pub severity: Severity,
    /// One or more sentences in English, the last of them what can be done.
    pub text: String,
    /// What the text is made of; `None` in a notice of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

impl Notice {
    /// A notice with a text alone.
    pub fn new(code: Code, severity: Severity, text: impl Into<String>) -> Self {
        Self { code, severity, text: text.into(), data: None }
    }

    /// The section that explains this notice, e.g.
    /// `docs/troubleshooting.md#memory-elevated`.
    pub fn help(&self) -> String {
        format!("{HELP_PAGE}#{}", self.code.as_str().replace(['.', '_'], "-"))
    }
}

impl From<Message> for Notice {
    fn from(message: Message) -> Self {
        let (code, severity, text) = (message.code(), message.severity(), message.text());
        Self { code, severity, text, data: Some(message.data()) }
    }
}

/// What a notice means for the result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The result is what was asked for: retried, batch halved.
    Info,
    /// The result is there, in a lesser form: precision, model, speakers, CPU.
    Degraded,
    /// Something asked for is missing.
    Failed,
}

/// Declares the notices of a crate: their codes, and their messages with figures. The first
/// word is what the messages are called on the window's pages.
#[macro_export]
macro_rules! notices {
    ($page:tt; $($(#[$doc:meta])* $name:ident = $code:tt {
        $($(#[$about:meta])* $field:ident: $kind:ty,)*
    },)*) => {
        /// Stable names of the notices.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $code)] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable name, e.g. `memory.elevated`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The code of that name; `None` for a name of another crate's notice.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == code)
            }
        }

        /// What a notice says, as figures. Amounts are bytes, times seconds, shares 0 to 1.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        #[cfg_attr(feature = "ts", ts(rename = $page))]
        #[serde(tag = "code", content = "data")]
        pub enum Message {
            $($(#[$doc])* #[serde(rename = $code)] $name { $($(#[$about])* $field: $kind,)* },)*
        }

        impl Message {
            /// Which notice it is.
            pub fn code(&self) -> Code {
                match self {
                    $(Self::$name { .. } => Code::$name,)*
                }
            }

            /// The figures by their names.
            pub fn data(&self) -> serde_json::Map<String, serde_json::Value> {
                match serde_json::to_value(self) {
                    Ok(serde_json::Value::Object(mut whole)) => match whole.remove("data") {
                        Some(serde_json::Value::Object(data)) => data,
                        _ => serde_json::Map::new(),
                    },
                    _ => serde_json::Map::new(),
                }
            }

            /// The reverse of [`Message::data`]; `None` where another version wrote it.
            pub fn of(code: Code, data: &serde_json::Map<String, serde_json::Value>) -> Option<Self> {
                let whole = serde_json::json!({ "code": code.as_str(), "data": data });
                serde_json::from_value(whole).ok()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceKind, message::Relief};

    #[test]
    fn codes_are_the_same_in_text_and_in_json() {
        for code in Code::ALL {
            assert_eq!(Code::from_code(code.as_str()), Some(*code));
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
        }
    }

    /// The form in which transcripts keep notices.
    #[test]
    fn a_notice_has_the_form_of_every_notice() {
        let notice = Notice::new(Code::MovedToCpu, Severity::Degraded, "Text.");
        assert_eq!(
            serde_json::to_string(&notice).unwrap(),
            r#"{"code":"memory.moved_to_cpu","severity":"degraded","text":"Text."}"#
        );
    }

    #[test]
    fn figures_come_back_and_older_notices_have_none() {
        let message = Message::Elevated {
            kind: DeviceKind::Gpu,
            share: 0.723,
            relief: Relief::Others { bytes: 5 << 30 },
        };
        let notice = Notice::from(message.clone());
        assert_eq!(
            notice.text,
            "GPU memory usage is elevated (72.3%). Other programs hold 5.0 GB: closing one of them helps most."
        );
        let back: Notice = serde_json::from_str(&serde_json::to_string(&notice).unwrap()).unwrap();
        assert_eq!(Message::of(back.code, back.data.as_ref().unwrap()), Some(message));
        let old: Notice =
            serde_json::from_str(r#"{"code":"memory.spike","severity":"info","text":"It rose."}"#).unwrap();
        assert_eq!((old.text.as_str(), old.data), ("It rose.", None));
    }

    #[test]
    fn a_notice_names_its_section_of_the_manual() {
        let notice = Notice::new(Code::BatchHalved, Severity::Info, "");
        assert_eq!(notice.help(), "docs/troubleshooting.md#memory-batch-halved");
    }
}
