//! The lists of commands agree.

use std::collections::BTreeSet;

#[test]
fn every_command_is_granted_and_nothing_else_is() {
    let capability = include_str!("../capabilities/main.json");
    let capability: serde_json::Value = serde_json::from_str(capability).unwrap();
    let granted: BTreeSet<String> = capability["permissions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().into())
        .collect();
    let commands = include!("commands.in");
    let wanted = commands.iter().map(|name| format!("allow-{}", name.replace('_', "-"))).collect();
    assert_eq!(granted, wanted);
}

#[test]
fn every_command_that_is_handled_is_listed() {
    let main = include_str!("main.rs");
    let handler = main.split("generate_handler![").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let names = handler.split(',').filter_map(|path| path.trim().rsplit("::").next());
    let handled: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let listed: BTreeSet<&str> = include!("commands.in").into_iter().collect();
    assert_eq!(handled, listed);
}
