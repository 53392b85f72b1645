//! Vectors of `f32` lanes for the tile: AVX-512, AVX2 and plain arrays behind one trait.
//!
//! Only the loads, stores and the fused multiply-add that a tile needs; each lane is one output element, so no
//! operation here mixes lanes and the width changes no result.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector of [`Lanes::WIDTH`] floats.
///
/// Every method is inlined into a function compiled for the instruction set in question.
///
/// # Safety
/// Callers of all methods hold the instruction set; pointers are valid for `WIDTH` elements, or for the elements of
/// the mask.
pub(super) trait Lanes: Copy {
    /// Elements a vector.
    const WIDTH: usize;
    /// Selects the first elements of a vector.
    type Mask: Copy;

    unsafe fn zero() -> Self;
    /// All lanes hold `*from`.
    unsafe fn splat(from: *const f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// The mask of the first `count` elements, `count <= WIDTH`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// Elements outside the mask are not read and become zero.
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self;
    /// Elements outside the mask are not written.
    unsafe fn store_masked(self, to: *mut f32, mask: Self::Mask);
    /// `self * other + addend`, rounded once.
    unsafe fn mul_add(self, other: Self, addend: Self) -> Self;
}

/// Sixteen lanes of AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

// SAFETY of the bodies: the trait's contract.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    const WIDTH: usize = 16;
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm512_setzero_ps()) }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        unsafe { Self(_mm512_set1_ps(*from)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Self(_mm512_loadu_ps(from)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn mask(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __mmask16) -> Self {
        unsafe { Self(_mm512_maskz_loadu_ps(mask, from)) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __mmask16) {
        unsafe { _mm512_mask_storeu_ps(to, mask, self.0) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, other: Self, addend: Self) -> Self {
        unsafe { Self(_mm512_fmadd_ps(self.0, other.0, addend.0)) }
    }
}

/// Eight lanes of AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

// SAFETY of the bodies: the trait's contract.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    const WIDTH: usize = 8;
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm256_setzero_ps()) }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        unsafe { Self(_mm256_set1_ps(*from)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Self(_mm256_loadu_ps(from)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn mask(count: usize) -> __m256i {
        unsafe {
            let index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), index)
        }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __m256i) -> Self {
        unsafe { Self(_mm256_maskload_ps(from, mask)) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __m256i) {
        unsafe { _mm256_maskstore_ps(to, mask, self.0) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, other: Self, addend: Self) -> Self {
        unsafe { Self(_mm256_fmadd_ps(self.0, other.0, addend.0)) }
    }
}

/// Eight lanes in an array, for every other machine.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

// SAFETY of the bodies: the trait's contract.
impl Lanes for Plain {
    const WIDTH: usize = 8;
    type Mask = usize;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 8])
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        unsafe { Self([*from; 8]) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Self(from.cast::<[f32; 8]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { to.cast::<[f32; 8]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: usize) -> Self {
        let mut lanes = [0.0; 8];
        unsafe { std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), mask) };
        Self(lanes)
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: usize) {
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, mask) };
    }
    #[inline(always)]
    unsafe fn mul_add(self, other: Self, addend: Self) -> Self {
        let mut lanes = addend.0;
        for (lane, (&x, &y)) in lanes.iter_mut().zip(self.0.iter().zip(&other.0)) {
            *lane = x.mul_add(y, *lane);
        }
        Self(lanes)
    }
}
