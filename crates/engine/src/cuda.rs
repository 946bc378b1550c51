// The same program under another name, so that a build with the feature `cuda`
// leaves the CPU's engine beside it as it was.
include!("main.rs");
