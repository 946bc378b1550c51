//! What host and engine send each other: frames and messages.

mod frames;
mod messages;
