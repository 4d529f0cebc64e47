//! The filter of system calls as a program for the kernel (seccomp(2)).
//!
//! It looks at the number of the call alone, so that kernels from 5.11 on know the answer beforehand and do not run it. Two are
//! looked at further: `clone` must make no namespaces, and `personality` must not make a program easier to attack.

use std::io;

use libc::sock_filter;

use super::calls::ALLOWED;
use crate::error::{EnterError, during};

/// The program's instructions and answers (linux/bpf_common.h, linux/seccomp.h).
const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;

/// Where `struct seccomp_data` has the number, the architecture and the lower half of the first argument.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const FIRST_ARGUMENT_AT: u32 = 16;

/// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// What container engines let a program ask of `personality`: PER_LINUX, PER_LINUX32, both with UNAME26, and what it has.
const PERSONALITIES: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// The name that the kernel has for calls of this program (linux/audit.h); `None`: the list is not for this one.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

const WHAT: &str = "write the filter of system calls";

/// The program.
///
/// # Errors
/// On an architecture that there is no list for.
pub(super) fn program() -> Result<Vec<sock_filter>, EnterError> {
    let architecture = architecture()?;
    let refuse = |code: i32| answer(ERRNO | code.unsigned_abs());
    let mut program = vec![
        statement(LOAD, ARCHITECTURE_AT),
        jump(IF_EQUAL, architecture, 1, 0),
        // Numbers of another architecture mean other calls.
        answer(KILL_PROCESS),
        statement(LOAD, NUMBER_AT),
        jump(IF_EQUAL, number(libc::SYS_clone), 0, 4),
        statement(LOAD, FIRST_ARGUMENT_AT),
        jump(IF_ANY_BIT, NEW_NAMESPACES, 0, 1),
        refuse(libc::EPERM),
        answer(ALLOW),
        // Its flags lie in memory, where no filter can see them: libraries fall back to `clone`.
        jump(IF_EQUAL, number(libc::SYS_clone3), 0, 1),
        refuse(libc::ENOSYS),
    ];
    program.extend(personality(refuse(libc::EPERM)));
    // Programs take that for an older kernel, and do without the call; EPERM would be an error to them.
    let newest = ALLOWED.iter().map(|call| number(*call)).max().unwrap_or(0);
    program.extend([jump(IF_GREATER, newest, 0, 1), refuse(libc::ENOSYS)]);
    program.extend(search(&ranges(ALLOWED.iter().map(|call| number(*call)).collect()), refuse(libc::EPERM)));
    // The kernel takes no more than 4096.
    if program.len() > 4096 { Err(during(WHAT)(io::Error::from(io::ErrorKind::FileTooLarge))) } else { Ok(program) }
}

/// A program that answers one call with success, without the kernel doing anything, and allows all others.
///
/// # Errors
/// On an architecture whose calls are not known.
pub(super) fn succeeding(call: libc::c_long) -> Result<Vec<sock_filter>, EnterError> {
    Ok(vec![
        statement(LOAD, ARCHITECTURE_AT),
        jump(IF_EQUAL, architecture()?, 0, 3),
        statement(LOAD, NUMBER_AT),
        jump(IF_EQUAL, number(call), 0, 1),
        answer(ERRNO),
        answer(ALLOW),
    ])
}

fn architecture() -> Result<u32, EnterError> {
    let why = "there is no list of calls for this architecture; write `seccomp = \"off\"` in the study";
    ARCHITECTURE.ok_or_else(|| during(WHAT)(io::Error::new(io::ErrorKind::Unsupported, why)))
}

/// Allows `personality` with the arguments of the list; goes on with every other call.
fn personality(refused: sock_filter) -> Vec<sock_filter> {
    let allow = PERSONALITIES.iter().zip((1..=PERSONALITIES.len() as u8).rev());
    let mut block = vec![statement(LOAD, FIRST_ARGUMENT_AT)];
    block.extend(allow.map(|(asked, to_the_end)| jump(IF_EQUAL, *asked, to_the_end, 0)));
    block.extend([refused, answer(ALLOW)]);
    block.insert(0, jump(IF_EQUAL, number(libc::SYS_personality), 0, block.len() as u8));
    block
}

/// Numbers of calls are small and positive.
fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// The numbers as ranges, each with its first and last, in order.
fn ranges(mut numbers: Vec<u32>) -> Vec<(u32, u32)> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, *run.last()?))).collect()
}

/// Allows what is in the ranges, by halves: a call that no kernel knows beforehand takes a handful of comparisons.
fn search(ranges: &[(u32, u32)], refused: sock_filter) -> Vec<sock_filter> {
    match ranges {
        [] => vec![refused],
        [(first, last)] => {
            vec![jump(IF_AT_LEAST, *first, 0, 1), jump(IF_GREATER, *last, 0, 1), refused, answer(ALLOW)]
        }
        several => {
            let (lower, upper) = several.split_at(several.len() / 2);
            let (pivot, lower) = (upper[0].0, search(lower, refused));
            // A jump goes 255 instructions at most, and the lower half of all ranges has fewer (a test sees to that).
            let over = u8::try_from(lower.len()).unwrap_or(u8::MAX);
            let mut both = vec![jump(IF_AT_LEAST, pivot, over, 0)];
            both.extend(lower);
            both.extend(search(upper, refused));
            both
        }
    }
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn answer(k: u32) -> sock_filter {
    statement(RETURN, k)
}

/// Skips `yes` instructions where the comparison holds, else `no`.
const fn jump(code: u16, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code, jt: yes, jf: no, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel answers, as its own interpreter would find it.
    fn judge(program: &[sock_filter], architecture: u32, call: u32, argument: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match code {
                LOAD => {
                    value = match k {
                        NUMBER_AT => call,
                        ARCHITECTURE_AT => architecture,
                        other => {
                            assert_eq!(other, FIRST_ARGUMENT_AT);
                            argument
                        }
                    };
                    continue;
                }
                RETURN => return k,
                IF_EQUAL => value == k,
                IF_AT_LEAST => value >= k,
                IF_GREATER => value > k,
                other => {
                    assert_eq!(other, IF_ANY_BIT);
                    value & k != 0
                }
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[test]
    fn every_number_is_answered_as_the_list_has_it() {
        let (program, ours) = (program().unwrap(), ARCHITECTURE.unwrap());
        let (clone, clone3) = (number(libc::SYS_clone), number(libc::SYS_clone3));
        let personality = number(libc::SYS_personality);
        let refused = ERRNO | libc::EPERM.unsigned_abs();
        let unknown = ERRNO | libc::ENOSYS.unsigned_abs();
        // With the numbers of x32 programs, which share this architecture's name.
        for call in
            (0..1024).chain(0x4000_0000..0x4000_0400).filter(|call| ![clone, clone3, personality].contains(call))
        {
            let listed = ALLOWED.iter().any(|allowed| number(*allowed) == call);
            // removexattrat has the last number of the list.
            let otherwise = if call > 466 { unknown } else { refused };
            assert_eq!(judge(&program, ours, call, u32::MAX), if listed { ALLOW } else { otherwise }, "call {call}");
        }
        assert_eq!(judge(&program, ours, clone3, 0), unknown);
        let io_pgetevents = if cfg!(target_arch = "x86_64") { 333 } else { 292 };
        assert_eq!(judge(&program, ours, io_pgetevents, 0), ALLOW);
        for asked in [0, 8, 0x2_0000, 0x2_0008, u32::MAX] {
            assert_eq!(judge(&program, ours, personality, asked), ALLOW, "personality {asked:#x}");
        }
        // ADDR_NO_RANDOMIZE and READ_IMPLIES_EXEC.
        for asked in [0x4_0000, 0x40_0000, 1] {
            assert_eq!(judge(&program, ours, personality, asked), refused, "personality {asked:#x}");
        }
        assert_eq!(judge(&program, ours, clone, libc::SIGCHLD.unsigned_abs()), ALLOW);
        for namespace in [libc::CLONE_NEWNS, libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWCGROUP] {
            assert_eq!(judge(&program, ours, clone, namespace.cast_unsigned()), refused);
        }
        assert_eq!(judge(&program, 0x4000_0003, 1, 0), KILL_PROCESS, "a program of 32 bits");
    }

    #[test]
    fn no_jump_is_longer_than_an_instruction_can_say() {
        let ranges = ranges(ALLOWED.iter().map(|call| number(*call)).collect());
        let lower = search(&ranges[..ranges.len() / 2], answer(0));
        assert!(lower.len() < 256, "{} instructions", lower.len());
    }
}
