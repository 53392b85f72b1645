//! Choice of the instruction set, and one way to compile the same body for each of them.
//!
//! Bodies are written in plain Rust with `f32::mul_add` and explicit 16-lane accumulators; the compiler vectorises
//! them. Rust neither reassociates nor contracts floating-point arithmetic, so every version gives the same bits.

use std::sync::atomic::{AtomicU8, Ordering};

/// Number of lanes that every lane-wise reduction uses, on every instruction set.
pub const LANES: usize = 16;

/// Instruction sets with a version of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isa {
    /// What the target guarantees; `f32::mul_add` may be a library call.
    Portable = 1,
    /// AVX2 with FMA.
    Avx2 = 2,
    /// AVX-512 (F, VL, DQ, BW).
    Avx512 = 3,
}

static FORCED: AtomicU8 = AtomicU8::new(0);

/// The instruction set in use: the best one this machine has, unless [`force_isa`] lowered it.
#[inline]
pub fn isa() -> Isa {
    match FORCED.load(Ordering::Relaxed) {
        1 => Isa::Portable,
        2 => Isa::Avx2,
        3 => Isa::Avx512,
        _ => {
            let best = best_isa();
            FORCED.store(best as u8, Ordering::Relaxed);
            best
        }
    }
}

/// The best instruction set this machine has; the environment variable `RAGEN_ISA` (`portable`, `avx2`, `avx512`)
/// lowers it.
pub fn best_isa() -> Isa {
    let machine = machine_isa();
    let asked = match std::env::var("RAGEN_ISA").as_deref() {
        Ok("portable") => Isa::Portable,
        Ok("avx2") => Isa::Avx2,
        _ => Isa::Avx512,
    };
    if (asked as u8) < (machine as u8) { asked } else { machine }
}

fn machine_isa() -> Isa {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("fma")
        {
            return Isa::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Isa::Avx2;
        }
    }
    Isa::Portable
}

/// Uses `wanted` from now on in the whole process, if this machine has it. Returns what is used. For tests and
/// benchmarks.
pub fn force_isa(wanted: Isa) -> Isa {
    let machine = machine_isa();
    let used = if (wanted as u8) < (machine as u8) { wanted } else { machine };
    FORCED.store(used as u8, Ordering::Relaxed);
    used
}

/// Compiles a function once per instruction set and picks the version at run time.
///
/// The body must be safe code over its arguments; what it calls must be `#[inline(always)]` to be compiled with the
/// same features.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match $crate::simd::isa() {
                    // SAFETY: `isa` names only instruction sets that this machine was found to have.
                    $crate::simd::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Isa::Portable => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;

/// Adds the sixteen lanes in a fixed tree.
#[inline(always)]
pub fn sum_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}
