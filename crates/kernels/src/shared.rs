//! A mutable buffer that several threads fill at disjoint places.

use std::marker::PhantomData;

/// Lets parallel tasks write disjoint parts of one buffer when the parts interleave (heads within a token's row), so
/// that the buffer cannot be cut into slices beforehand.
#[derive(Clone, Copy)]
pub struct SharedMut<'a> {
    ptr: *mut f32,
    len: usize,
    life: PhantomData<&'a mut [f32]>,
}

// SAFETY: the type only hands out access through `unsafe` methods whose callers promise disjoint parts.
unsafe impl Send for SharedMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedMut<'_> {}

impl<'a> SharedMut<'a> {
    /// Takes exclusive hold of `buffer` for as long as the tasks run.
    pub fn new(buffer: &'a mut [f32]) -> Self {
        Self { ptr: buffer.as_mut_ptr(), len: buffer.len(), life: PhantomData }
    }

    /// The part `[start, start + len)`.
    ///
    /// # Safety
    /// While the returned slice lives, no other task may read or write any of its elements.
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    #[inline(always)]
    pub unsafe fn part(&self, start: usize, len: usize) -> &mut [f32] {
        assert!(start + len <= self.len, "part {start}+{len} of a buffer of {}", self.len);
        // SAFETY: in bounds by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(start), len) }
    }

    /// The part `[start, start + len)`, for reading.
    ///
    /// # Safety
    /// While the returned slice lives, no task may write any of its elements.
    #[inline(always)]
    pub unsafe fn view(&self, start: usize, len: usize) -> &[f32] {
        assert!(start + len <= self.len, "part {start}+{len} of a buffer of {}", self.len);
        // SAFETY: in bounds by the assertion; not written by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr.add(start), len) }
    }

    /// Where the part `[start, start + len)` lies. What is read or written through it is the caller's to answer for.
    #[inline(always)]
    pub(crate) fn place(&self, start: usize, len: usize) -> *const f32 {
        assert!(start + len <= self.len, "part {start}+{len} of a buffer of {}", self.len);
        self.ptr.wrapping_add(start)
    }
}
