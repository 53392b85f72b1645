//! Measured ceilings of the machine: fused multiply-adds and memory reads.
//!
//! Speeds of products mean something only beside these, taken in the same run: on a shared machine both vary by the
//! second. Nothing here is used by the products themselves.

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use super::pack::Memory;
use super::tile::fetch;
use crate::simd::{Isa, isa, multiversion};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Chains of multiply-adds in flight; twelve hide the latency on every x86 core so far and fit sixteen registers.
const CHAINS: usize = 12;
/// Multiply-adds of each chain in one repetition: a few milliseconds.
const STEPS: usize = 1 << 20;
/// Bytes that all threads together read in one repetition: as much as the layers of a small model, beyond the caches
/// near a core.
const READ_BYTES: usize = 96 << 20;
/// Elements that a stream is fetched ahead.
const AHEAD: usize = 1024;
/// Repetitions, of which the best counts: a ceiling is what the machine can do when nothing else interrupts.
const REPETITIONS: usize = 5;

/// Speed of `f32` fused multiply-adds in registers on `threads` threads of their own, in GFLOP/s (two operations
/// each), with the instruction set in use. The best of five repetitions, a few milliseconds each.
pub fn fma_peak_gflops(threads: usize) -> f64 {
    let threads = threads.max(1);
    let (run, width): (fn(), usize) = match isa() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` names only instruction sets that this machine was found to have.
        Isa::Avx512 => (|| unsafe { chains_avx512() }, Avx512::WIDTH),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2 => (|| unsafe { chains_avx2() }, Avx2::WIDTH),
        // SAFETY: needs no instruction set beyond the target's.
        _ => (|| unsafe { chains::<Plain>() }, Plain::WIDTH),
    };
    let operations = 2 * threads * CHAINS * STEPS * width;
    operations as f64 / best_time(threads, |_| run()).as_nanos().max(1) as f64
}

/// Speed at which `threads` threads of their own read memory, in GB/s (1e9 bytes), each its part of 96 MiB. The best of
/// five passes.
pub fn read_bandwidth_gbs(threads: usize) -> f64 {
    let threads = threads.max(1);
    let part = READ_BYTES / size_of::<f32>() / threads;
    // Written on creation, so that every page is one of its own.
    let memory = Memory::new(part * threads);
    let time = best_time(threads, |thread| {
        black_box(sum(&memory.as_slice()[thread * part..][..part]));
    });
    (memory.len() * size_of::<f32>()) as f64 / time.as_nanos().max(1) as f64
}

/// Least time over repetitions from the common start to the last thread's end.
fn best_time(threads: usize, run: impl Fn(usize) + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    (0..REPETITIONS)
        .map(|_| {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads)
                    .map(|thread| {
                        let (barrier, run) = (&barrier, &run);
                        scope.spawn(move || {
                            barrier.wait();
                            let start = Instant::now();
                            run(thread);
                            (start, Instant::now())
                        })
                    })
                    .collect();
                let spans: Vec<_> = workers.into_iter().filter_map(|w| w.join().ok()).collect();
                let start = spans.iter().map(|span| span.0).min();
                let end = spans.iter().map(|span| span.1).max();
                start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start)
            })
        })
        .min()
        .unwrap_or_default()
}

/// # Safety
/// As for the methods of [`Lanes`].
#[inline(always)]
unsafe fn chains<V: Lanes>() {
    // SAFETY: the caller's contract; arrays hold a vector each.
    unsafe {
        let half = black_box([0.5f32; 16]);
        let (factor, addend) = (V::load(half.as_ptr()), V::load(half.as_ptr()));
        let mut acc = [V::zero(); CHAINS];
        for _ in 0..STEPS {
            for chain in &mut acc {
                *chain = chain.mul_add(factor, addend);
            }
        }
        for chain in acc {
            let mut out = [0.0f32; 16];
            chain.store(out.as_mut_ptr());
            black_box(out);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn chains_avx512() {
    // SAFETY: compiled for, and called with, this instruction set.
    unsafe { chains::<Avx512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn chains_avx2() {
    // SAFETY: compiled for, and called with, this instruction set.
    unsafe { chains::<Avx2>() }
}

multiversion! {
    /// A sum over four streams at once in 64 lanes each: enough loads in flight to wait for memory only.
    fn sum(values: &[f32]) -> f32 {
        let quarter = values.len() / 4;
        let (first, rest) = values.split_at(quarter);
        let (second, rest) = rest.split_at(quarter);
        let (third, fourth) = rest.split_at(quarter);
        let mut lanes = [[0.0f32; 64]; 4];
        for i in (0..quarter).step_by(64) {
            for (lanes, stream) in lanes.iter_mut().zip([first, second, third, fourth]) {
                for line in 0..4 {
                    fetch(stream.as_ptr().wrapping_add(i + AHEAD + 16 * line));
                }
                for (lane, &value) in lanes.iter_mut().zip(&stream[i..(i + 64).min(quarter)]) {
                    *lane += value;
                }
            }
        }
        lanes.iter().flatten().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_plausible() {
        let (peak, bandwidth) = (fma_peak_gflops(1), read_bandwidth_gbs(2));
        assert!(peak > 0.01 && peak < 10_000.0, "{peak} GFLOP/s");
        assert!(bandwidth > 0.05 && bandwidth < 10_000.0, "{bandwidth} GB/s");
    }
}
