//! Why a process ended: tells an out-of-memory death from any other. This is where an
//! out-of-memory error is recognised, by signal, exit code and text.

use serde::{Deserialize, Serialize};

/// The end of an engine, as its supervisor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<'a> {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal, where one ended it ([`crate::platform::signal_of`]).
    pub signal: Option<i32>,
    /// Whether we sent that signal, or asked it to end.
    pub wanted: bool,
    /// Whether the system says that processes were killed for lack of memory, or had next to
    /// none left ([`crate::shortage::Shortage`]).
    pub memory_was_short: bool,
    /// The last of what it wrote to standard error.
    pub stderr_tail: &'a str,
}

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Death {
    /// It ended because it was told to, or with success.
    Wanted,
    /// Memory ran out: counts as one rung down.
    OutOfMemory(Evidence),
    /// The system or a person killed it, and nothing says that it was for memory.
    Killed,
    /// An error of the device, which a new process may not have.
    Device,
    /// Anything else: a bug, to be reported as such.
    Crash,
}

/// How it is known that memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A SIGKILL that this program did not send, where memory was short: the kernel's
    /// out-of-memory killer, or one of the system's.
    Killed,
    /// An abort after an allocation failed.
    AllocationFailed,
    /// It exited and said so.
    Reported,
}

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;
/// What a shell makes of a SIGKILL: 128 + 9.
const KILLED_UNDER_SHELL: i32 = 137;
/// `STATUS_NO_MEMORY` and `STATUS_COMMITMENT_LIMIT` of Windows.
const WINDOWS_NO_MEMORY: [i32; 2] = [0xC000_0017_u32 as i32, 0xC000_012D_u32 as i32];

/// Classifies the end of a process. A SIGKILL that this program did not send is out of
/// memory where memory was short, and an abort is where it follows a message about an
/// allocation.
pub fn classify(end: End) -> Death {
    if end.wanted || end.code == Some(0) {
        return Death::Wanted;
    }
    let says_so = says_out_of_memory(end.stderr_tail);
    match (end.signal, end.code) {
        (Some(SIGKILL), _) | (None, Some(KILLED_UNDER_SHELL)) => {
            if end.memory_was_short {
                Death::OutOfMemory(Evidence::Killed)
            } else {
                Death::Killed
            }
        }
        (None, Some(code)) if WINDOWS_NO_MEMORY.contains(&code) => {
            Death::OutOfMemory(Evidence::AllocationFailed)
        }
        (Some(SIGABRT), _) if says_so => Death::OutOfMemory(Evidence::AllocationFailed),
        (None, Some(_)) if says_so => Death::OutOfMemory(Evidence::Reported),
        _ if says_device_failed(end.stderr_tail) => Death::Device,
        _ => Death::Crash,
    }
}

/// Whether a text is about memory that ran out. For errors that reach us only
/// as text: a wrapped error of the GPU, the last words of a process.
pub fn says_out_of_memory(text: &str) -> bool {
    const SIGNS: [&str; 9] = [
        // The Rust runtime: "memory allocation of 123 bytes failed".
        "memory allocation of",
        "out of memory",
        "out_of_memory",
        "outofmemory",
        "bad_alloc",
        "cannot allocate memory",
        // cuBLAS, cuDNN: CUBLAS_STATUS_ALLOC_FAILED.
        "alloc_failed",
        // cuRAND: CURAND_STATUS_ALLOCATION_FAILED.
        "allocation_failed",
        "not enough memory",
    ];
    let text = text.to_ascii_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a text is about a GPU that the engine has no working code for: it would fail the same way
/// each time.
pub fn says_no_code(text: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "cuda_error_not_found",
        "cuda_error_invalid_ptx",
        "cuda_error_no_binary_for_gpu",
        "cuda_error_unsupported_ptx_version",
        "cuda_error_invalid_image",
        "cuda_error_jit_compiler_not_found",
        "cublas_status_arch_mismatch",
        "curand_status_arch_mismatch",
    ];
    let text = text.to_ascii_lowercase();
    !says_out_of_memory(&text) && SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a text is about a GPU that failed for another reason than memory.
pub fn says_device_failed(text: &str) -> bool {
    const SIGNS: [&str; 4] = ["cuda_error_", "cuda error", "cublas_status_", "drivererror("];
    let text = text.to_ascii_lowercase();
    !says_out_of_memory(&text) && SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_told_apart() {
        let allocation = "loading\nmemory allocation of 68719476736 bytes failed\n";
        let panic = "thread 'main' panicked at src/x.rs:1: index out of bounds\n";
        // (code, signal, wanted, stderr) -> death
        let cases = [
            ((Some(0), None, false, ""), Death::Wanted),
            ((None, Some(9), true, ""), Death::Wanted),
            ((None, Some(9), false, ""), Death::Killed),
            ((Some(137), None, false, ""), Death::Killed),
            ((None, Some(6), false, allocation), Death::OutOfMemory(Evidence::AllocationFailed)),
            ((None, Some(6), false, panic), Death::Crash),
            ((None, Some(11), false, ""), Death::Crash),
            // A segmentation fault after a message about memory is still a bug.
            ((None, Some(11), false, allocation), Death::Crash),
            ((Some(0xC000_0017_u32 as i32), None, false, ""), Death::OutOfMemory(Evidence::AllocationFailed)),
            ((Some(101), None, false, panic), Death::Crash),
            (
                (Some(1), None, false, "terminate called after throwing 'std::bad_alloc'"),
                Death::OutOfMemory(Evidence::Reported),
            ),
            (
                (
                    Some(1),
                    None,
                    false,
                    "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")",
                ),
                Death::Device,
            ),
            ((None, Some(6), false, "CUDA_ERROR_LAUNCH_FAILED"), Death::Device),
            ((Some(1), None, false, ""), Death::Crash),
        ];
        for ((code, signal, wanted, stderr_tail), expected) in cases {
            let end = End { code, signal, wanted, memory_was_short: false, stderr_tail };
            assert_eq!(classify(end), expected, "{end:?}");
            // Only a kill means another thing where memory was short.
            let in_need = match expected {
                Death::Killed => Death::OutOfMemory(Evidence::Killed),
                other => other,
            };
            assert_eq!(classify(End { memory_was_short: true, ..end }), in_need, "{end:?}");
        }
    }

    #[test]
    fn errors_of_the_device_are_recognised_by_their_text() {
        for (text, memory, device) in [
            ("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")", true, false),
            ("CublasError(CUBLAS_STATUS_ALLOC_FAILED)", true, false),
            ("CurandError(CURAND_STATUS_ALLOCATION_FAILED)", true, false),
            ("Cannot allocate memory (os error 12)", true, false),
            ("DriverError(CUDA_ERROR_LAUNCH_TIMEOUT, \"the launch timed out\")", false, true),
            ("CublasError(CUBLAS_STATUS_EXECUTION_FAILED)", false, true),
            ("shape mismatch in matmul", false, false),
            ("DriverError(CUDA_ERROR_NOT_FOUND, \"named symbol not found\")", false, true),
        ] {
            assert_eq!((says_out_of_memory(text), says_device_failed(text)), (memory, device), "{text}");
        }
        for (text, expected) in [
            ("DriverError(CUDA_ERROR_NOT_FOUND, \"named symbol not found\")", true),
            ("DriverError(CUDA_ERROR_INVALID_PTX, \"a PTX JIT compilation failed\")", true),
            ("DriverError(CUDA_ERROR_NO_BINARY_FOR_GPU, \"no kernel image is available\")", true),
            ("DriverError(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, \"unsupported toolchain\")", true),
            ("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")", false),
            ("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")", false),
        ] {
            assert_eq!(says_no_code(text), expected, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_real_process_that_can_not_allocate_is_recognised() {
        // A shell that ends itself as the kernel would.
        let output = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).output().unwrap();
        let end = End {
            code: output.status.code(),
            signal: crate::platform::signal_of(output.status),
            wanted: false,
            memory_was_short: true,
            stderr_tail: "",
        };
        assert_eq!(classify(end), Death::OutOfMemory(Evidence::Killed));
    }
}
