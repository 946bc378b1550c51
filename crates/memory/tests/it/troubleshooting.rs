//! The page that every notice names.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::BTreeSet;

use memory::log::{Line, parse};
use memory::{Code, HELP_PAGE, Notice, Severity};

fn page() -> String {
    let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{project}/{HELP_PAGE}")).unwrap()
}

/// What a heading is called in a link: as the usual viewers of Markdown do it.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

/// The text below each heading, by its anchor.
fn sections(page: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            sections.push((anchor(line), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    sections
}

#[test]
fn every_notice_has_its_section_with_symptom_diagnosis_and_remedy() {
    let sections = sections(&page());
    for code in Code::ALL {
        let help = Notice::new(*code, Severity::Info, "").help();
        let (file, wanted) = help.split_once('#').unwrap();
        assert_eq!(file, HELP_PAGE);
        let Some((_, text)) = sections.iter().find(|(anchor, _)| anchor == wanted) else {
            panic!("no section {wanted:?}");
        };
        for part in ["**Diagnosis.** ", "**Remedy.** ", &format!("`{}`", code.as_str())] {
            assert!(text.contains(part), "{wanted}: no {part:?}");
        }
        // The symptom is a line of the log, of this very code.
        let shown = text.lines().filter_map(|line| parse(line.trim_start()));
        let codes: BTreeSet<Code> = shown
            .filter_map(|line| match line {
                Line::Notice { code, .. } => Some(code),
                Line::Memory { .. } => None,
            })
            .collect();
        assert_eq!(codes, BTreeSet::from([*code]), "{wanted}");
    }
}

#[test]
fn its_log_lines_are_such_as_are_written_and_its_links_lead_somewhere() {
    let page = page();
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(lines.len() >= Code::ALL.len());
    for line in lines {
        assert!(parse(line).is_some(), "{line:?}");
    }
    let anchors: Vec<String> = sections(&page).into_iter().map(|(anchor, _)| anchor).collect();
    for link in page.split("](#").skip(1) {
        let link = link.split(')').next().unwrap();
        assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
    }
}
