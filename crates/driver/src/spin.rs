//! A piece of computing that needs nothing but a CPU.

/// Steps of a piece; some tens of microseconds.
const STEPS: u64 = 50_000;

/// Multiplies a number again and again, and returns how often.
pub fn spin(state: &mut u64) -> u64 {
    for _ in 0..STEPS {
        // A chain of multiplications: each needs the last one's result.
        *state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    STEPS
}
