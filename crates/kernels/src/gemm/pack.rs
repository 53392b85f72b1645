//! Packing: copies of operands in the order in which tiles read them.
//!
//! A panel holds [`PANEL`] columns of the right-hand operand, inner index outermost, so that a tile reads it from
//! front to back; columns beyond the matrix are zero and never stored. Rows of a left-hand operand whose inner stride
//! is not one are packed by tile, again inner index outermost.

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use super::tile::{PANEL, fetch};
use crate::simd::{Isa, isa};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Elements that one inner step of packed rows takes: at least the rows of any tile, and one cache line.
pub(super) const STEP: usize = 16;

const HUGE_PAGE: usize = 2 << 20;

/// Zeroed `f32` memory aligned to cache lines, or to huge pages when it is large.
pub(super) struct Memory {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: owns plain memory.
unsafe impl Send for Memory {}
// SAFETY: shared references only read.
unsafe impl Sync for Memory {}

impl Memory {
    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<f32>()).expect("packed size overflows");
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 64 };
        Layout::from_size_align(bytes.max(64), align).expect("packed size overflows")
    }

    /// `len` zeros.
    pub fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        if layout.size() >= HUGE_PAGE {
            advise_huge_pages(start.as_ptr(), layout.size());
        }
        // Written only after the advice: pages get their size when they are first touched.
        // SAFETY: just allocated with this size.
        unsafe { std::ptr::write_bytes(start.as_ptr(), 0, layout.size()) };
        Self { start: start.cast(), len }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first element.
    pub fn as_ptr(&self) -> *const f32 {
        self.start.as_ptr()
    }

    /// Everything.
    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: `len` elements, initialised in `new`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The first element, to write.
    pub fn as_mut_ptr(&mut self) -> *mut f32 {
        self.start.as_ptr()
    }

    /// Makes room for at least `len` elements; what was there is lost.
    pub fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Self::new(len.next_power_of_two());
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len);
        // SAFETY: both hold `len` elements and are distinct allocations.
        unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), copy.as_mut_ptr(), self.len) };
        copy
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
    }
}

/// Asks the system to back memory of our own with huge pages, which spares most address translations of a weight that
/// is read from end to end. Only advice: where it is refused, nothing changes.
fn advise_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        const MADVISE: usize = 28;
        const HUGE_PAGE_ADVICE: usize = 14;
        // SAFETY: madvise(MADV_HUGEPAGE) keeps the contents; the kernel preserves all registers but these three.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") MADVISE => _,
                in("rdi") start,
                in("rsi") bytes / HUGE_PAGE * HUGE_PAGE,
                in("rdx") HUGE_PAGE_ADVICE,
                out("rcx") _,
                out("r11") _,
                options(nostack),
            );
        }
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    let _ = (start, bytes);
}

/// Packs `columns` columns of the row-major `b` (inner step `p` starts at `b + p * stride`) into panels of `depth`
/// steps, one after another.
///
/// # Safety
/// `b` is valid for these reads and `panels` for `columns.div_ceil(PANEL) * depth * PANEL` writes.
pub(super) unsafe fn panels_of_columns(b: *const f32, stride: usize, columns: usize, depth: usize, panels: *mut f32) {
    // SAFETY: the caller's contract; `isa` names what the machine has.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => panels_avx512(b, stride, columns, depth, panels),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => panels_avx2(b, stride, columns, depth, panels),
            _ => panels_body::<Plain>(b, stride, columns, depth, panels),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn panels_avx512(b: *const f32, stride: usize, columns: usize, depth: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { panels_body::<Avx512>(b, stride, columns, depth, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn panels_avx2(b: *const f32, stride: usize, columns: usize, depth: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { panels_body::<Avx2>(b, stride, columns, depth, to) }
}

#[inline(always)]
unsafe fn panels_body<V: Lanes>(b: *const f32, stride: usize, columns: usize, depth: usize, panels: *mut f32) {
    let full = columns / PANEL * PANEL;
    // Whole rows at a time: memory is read in its own order.
    for p in 0..depth {
        // SAFETY: inside both by the caller's contract.
        unsafe {
            let row = b.add(p * stride);
            for j in (0..columns).step_by(16) {
                fetch(row.wrapping_add(8 * stride + j));
            }
            for j in (0..full).step_by(PANEL) {
                let to = panels.add(j * depth + p * PANEL);
                for v in (0..PANEL).step_by(V::WIDTH) {
                    V::load(row.add(j + v)).store(to.add(v));
                }
            }
            if full < columns {
                copy_padded::<V, PANEL>(row.add(full), columns - full, panels.add(full * depth + p * PANEL));
            }
        }
    }
}

/// Copies `count <= TO` elements and fills up with zeros to `TO`.
#[inline(always)]
unsafe fn copy_padded<V: Lanes, const TO: usize>(from: *const f32, count: usize, to: *mut f32) {
    for v in (0..TO).step_by(V::WIDTH) {
        // SAFETY: the mask keeps reads within `count`; an empty mask reads nothing.
        unsafe {
            let valid = count.saturating_sub(v).min(V::WIDTH);
            V::load_masked(from.wrapping_add(v), V::mask(valid)).store(to.add(v));
        }
    }
}

/// Packs `rows <= STEP` rows and `depth` inner steps of an operand with arbitrary strides, inner index outermost and
/// [`STEP`] elements a step.
///
/// # Safety
/// `a` is valid for these reads and `to` for `STEP * depth` writes.
pub(super) unsafe fn steps_of_rows(
    a: *const f32,
    (row_stride, step_stride): (usize, usize),
    rows: usize,
    depth: usize,
    to: *mut f32,
) {
    if row_stride != 1 {
        for p in 0..depth {
            for i in 0..rows {
                // SAFETY: the caller's contract.
                unsafe { *to.add(p * STEP + i) = *a.add(p * step_stride + i * row_stride) };
            }
        }
        return;
    }
    // SAFETY: the caller's contract; `isa` names what the machine has.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => steps_avx512(a, step_stride, rows, depth, to),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => steps_avx2(a, step_stride, rows, depth, to),
            _ => steps_body::<Plain>(a, step_stride, rows, depth, to),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn steps_avx512(a: *const f32, stride: usize, rows: usize, depth: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { steps_body::<Avx512>(a, stride, rows, depth, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn steps_avx2(a: *const f32, stride: usize, rows: usize, depth: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe { steps_body::<Avx2>(a, stride, rows, depth, to) }
}

#[inline(always)]
unsafe fn steps_body<V: Lanes>(a: *const f32, stride: usize, rows: usize, depth: usize, to: *mut f32) {
    for p in 0..depth {
        // SAFETY: inside both by the caller's contract.
        unsafe {
            fetch(a.wrapping_add((p + 8) * stride));
            copy_padded::<V, STEP>(a.add(p * stride), rows, to.add(p * STEP));
        }
    }
}
