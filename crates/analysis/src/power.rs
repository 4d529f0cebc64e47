//! The difference that a study of so many blocks would have seen.

use crate::student;

/// Most blocks that the factors are tabulated for.
pub(crate) const BLOCKS_MAX: usize = 50;

/// By blocks from 2: the difference, in standard deviations of the log ratios as one study shows them, that another such
/// study calls one with 80 %; without a floor and with one. Made by simulation of the rule of the verdict itself
/// (normal noise of equal spread in every trial; `tests/power.rs` makes the table, standard error 0.2 % of power).
const FACTORS: [(f64, f64); BLOCKS_MAX - 1] = [
    (27.2975, 27.3802), // 2
    (5.0402, 5.0597),   // 3
    (2.8634, 2.8716),   // 4
    (2.0966, 2.1066),   // 5
    (2.1433, 2.1503),   // 6
    (1.5403, 1.5528),   // 7
    (1.4189, 1.4265),   // 8
    (1.2854, 1.2924),   // 9
    (1.1279, 1.1352),   // 10
    (1.0765, 1.0844),   // 11
    (1.0145, 1.0206),   // 12
    (0.9398, 0.9472),   // 13
    (0.8826, 0.8879),   // 14
    (0.8459, 0.8521),   // 15
    (0.8276, 0.8334),   // 16
    (0.7913, 0.7961),   // 17
    (0.7582, 0.7632),   // 18
    (0.7288, 0.7329),   // 19
    (0.7113, 0.7169),   // 20
    (0.6943, 0.6992),   // 21
    (0.6757, 0.6798),   // 22
    (0.6502, 0.6547),   // 23
    (0.6324, 0.6368),   // 24
    (0.6221, 0.6261),   // 25
    (0.6055, 0.6101),   // 26
    (0.5928, 0.5959),   // 27
    (0.5855, 0.5894),   // 28
    (0.5713, 0.5752),   // 29
    (0.5554, 0.5593),   // 30
    (0.5506, 0.5539),   // 31
    (0.5368, 0.5403),   // 32
    (0.5315, 0.5343),   // 33
    (0.5229, 0.5258),   // 34
    (0.5102, 0.5130),   // 35
    (0.5040, 0.5069),   // 36
    (0.4981, 0.5013),   // 37
    (0.4889, 0.4914),   // 38
    (0.4835, 0.4861),   // 39
    (0.4746, 0.4771),   // 40
    (0.4662, 0.4692),   // 41
    (0.4636, 0.4662),   // 42
    (0.4562, 0.4589),   // 43
    (0.4505, 0.4531),   // 44
    (0.4485, 0.4513),   // 45
    (0.4370, 0.4394),   // 46
    (0.4335, 0.4362),   // 47
    (0.4306, 0.4330),   // 48
    (0.4266, 0.4290),   // 49
    (0.4207, 0.4228),   // 50
];

/// The smallest log ratio that a study with blocks of the spread of `logs` detects with 80 % power.
/// `None` of fewer than two values.
pub(crate) fn detectable(logs: &[f64], with_floor: bool) -> Option<f64> {
    Some(factor(logs.len(), with_floor)? * student::deviation(logs)?)
}

/// The same in standard deviations of the log ratios.
pub(crate) fn factor(blocks: usize, with_floor: bool) -> Option<f64> {
    let tabulated = blocks.min(BLOCKS_MAX);
    let (without, with) = FACTORS.get(tabulated.checked_sub(2)?)?;
    // Beyond the table the factors fall as the standard error does.
    let beyond = (tabulated as f64 / blocks as f64).sqrt();
    Some(if with_floor { with } else { without } * beyond)
}
