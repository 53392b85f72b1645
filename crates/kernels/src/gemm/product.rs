//! The loops around the tile: blocks of the inner index, groups of panels, blocks of rows, and their split over threads.
//!
//! Every task writes a rectangle of the output that no other task touches and walks the inner index upwards, so how
//! the work is cut changes no bit.

use super::pack::{self, Memory};
use super::tile::{BY_ROW, BY_STEP, PANEL, Tile, TileFn, Tiles};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Longest block of the inner index: a panel of this depth and the rows beside it stay in the second-level cache.
const MAX_DEPTH: usize = 768;
/// Elements of the left-hand operand kept in the second-level cache.
const ROW_BLOCK: usize = 160 << 10;
/// Elements of panels packed at once.
const PANEL_GROUP: usize = 96 << 10;
/// Largest right-hand operand, in elements, that is read in place by several tiles.
const IN_PLACE: usize = 16 << 10;
/// Work below this estimate is not worth a fork and join, in nanoseconds.
const SERIAL_NS: usize = 15_000;

/// The right-hand operand `b[depth, columns]`.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// Packed panels over the whole depth.
    Panels(*const f32),
    /// Row-major with this stride.
    Rows(*const f32, usize),
    /// The transpose of a row-major matrix with this stride.
    Transposed(*const f32, usize),
}

/// `c[rows, columns] (+)= a[rows, depth] · b[depth, columns]`.
pub(super) struct Product {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: *const f32,
    pub a_row: usize,
    pub a_step: usize,
    pub b: Right,
    pub c: *mut f32,
    pub c_row: usize,
    pub accumulate: bool,
}

// SAFETY: the pointers stand for slices that the caller borrows for the whole call; tasks write disjoint rectangles.
unsafe impl Sync for Product {}

thread_local! {
    static SCRATCH: RefCell<[Memory; 2]> = RefCell::new([Memory::new(0), Memory::new(0)]);
}

/// Panels ready for tiles: a packed copy, or the operand in place.
struct Ready {
    start: *const f32,
    step: usize,
    panel: usize,
    /// The panels of the range lie one after another in memory that is not yet in the cache.
    stream: bool,
}

impl Product {
    /// Computes everything on the calling thread.
    ///
    /// # Safety
    /// The pointers are valid for the shapes and strides, and `c` overlaps neither operand.
    pub unsafe fn run_serial(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.run(0..self.rows, 0..self.columns.div_ceil(PANEL)) };
    }

    /// Computes everything, on the threads of the current pool if that pays.
    ///
    /// # Safety
    /// As [`Product::run_serial`].
    pub unsafe fn run_parallel(&self) {
        let work = self.rows.saturating_mul(self.columns).saturating_mul(self.depth);
        let weight = self.columns.saturating_mul(self.depth);
        if (work / 65).max(weight / 6) < SERIAL_NS {
            // SAFETY: the caller's contract.
            return unsafe { self.run_serial() };
        }
        let threads = rayon::current_num_threads();
        let (row_parts, panel_parts) = self.grid(threads);
        let tasks = row_parts * panel_parts;
        if threads == 1 || tasks == 1 {
            // SAFETY: the caller's contract.
            return unsafe { self.run_serial() };
        }
        let panels = self.columns.div_ceil(PANEL);
        let next = AtomicUsize::new(0);
        // Tasks are handed out as threads come free: a core that is slow or busy elsewhere takes fewer of them.
        fork(threads.min(tasks), &|| {
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= tasks {
                    break;
                }
                let rows = part(self.rows, row_parts, task / panel_parts);
                let columns = part(panels, panel_parts, task % panel_parts);
                // SAFETY: the caller's contract; rectangles of different tasks are disjoint.
                unsafe { self.run(rows, columns) };
            }
        });
    }

    /// Parts of the rows and of the panels for `threads` threads.
    fn grid(&self, threads: usize) -> (usize, usize) {
        let panels = self.columns.div_ceil(PANEL);
        let wanted = 4 * threads;
        // Few rows: every panel is read once, by one thread. Many rows: panels in chunks of three or more, so that
        // each chunk uses a row that it loads several times; the rest of the split goes to rows.
        let chunk = if self.rows <= 64 { 1 } else { 3 };
        let panel_parts = (panels / chunk).clamp(1, wanted);
        let row_parts = (self.rows / 56).clamp(1, wanted.div_ceil(panel_parts));
        (row_parts, panel_parts)
    }

    /// Computes the rectangle of `rows` and `panels`.
    ///
    /// # Safety
    /// As [`Product::run_serial`]; nothing else accesses the rectangle.
    unsafe fn run(&self, rows: Range<usize>, panels: Range<usize>) {
        if rows.is_empty() || panels.is_empty() {
            return;
        }
        if self.depth == 0 {
            if !self.accumulate {
                let columns = panels.start * PANEL..(panels.end * PANEL).min(self.columns);
                for i in rows {
                    // SAFETY: inside the rectangle.
                    unsafe {
                        std::ptr::write_bytes(self.c.add(i * self.c_row + columns.start), 0, columns.len());
                    }
                }
            }
            return;
        }
        SCRATCH.with_borrow_mut(|[packed_a, packed_b]| {
            let blocks = self.depth.div_ceil(MAX_DEPTH);
            for block in 0..blocks {
                let inner = part(self.depth, blocks, block);
                let group = match self.b {
                    Right::Panels(_) => panels.len(),
                    _ => (PANEL_GROUP / (PANEL * inner.len())).max(1),
                };
                for first in panels.clone().step_by(group) {
                    let panels = first..(first + group).min(panels.end);
                    // SAFETY: ranges lie inside the operands.
                    unsafe {
                        let ready = self.ready(rows.len(), &inner, &panels, packed_b);
                        self.run_rows(&rows, &inner, &panels, &ready, packed_a);
                    }
                }
            }
        });
    }

    /// Panels of the right-hand operand, packed unless they can be read in place.
    unsafe fn ready(&self, rows: usize, inner: &Range<usize>, panels: &Range<usize>, memory: &mut Memory) -> Ready {
        let depth = inner.len();
        let column = panels.start * PANEL;
        let columns = (panels.end * PANEL).min(self.columns) - column;
        // SAFETY: ranges lie inside the operands; the memory is made large enough.
        unsafe {
            match self.b {
                Right::Panels(start) => {
                    let start = start.add(column * self.depth + inner.start * PANEL);
                    Ready { start, step: PANEL, panel: PANEL * self.depth, stream: true }
                }
                Right::Rows(start, stride)
                    if rows <= Tiles::current().rows || self.columns * self.depth <= IN_PLACE =>
                {
                    let start = start.add(inner.start * stride + column);
                    Ready { start, step: stride, panel: PANEL, stream: false }
                }
                Right::Rows(start, stride) => {
                    memory.reserve(panels.len() * depth * PANEL);
                    let start = start.add(inner.start * stride + column);
                    pack::panels_of_columns(start, stride, columns, depth, memory.as_mut_ptr());
                    Ready { start: memory.as_ptr(), step: PANEL, panel: PANEL * depth, stream: false }
                }
                Right::Transposed(start, stride) => {
                    memory.reserve(panels.len() * depth * PANEL);
                    for j in (0..columns).step_by(PANEL) {
                        let from = start.add((column + j) * stride + inner.start);
                        let to = memory.as_mut_ptr().add(j * depth);
                        pack::panel_of_rows(from, stride, (columns - j).min(PANEL), depth, to);
                    }
                    Ready { start: memory.as_ptr(), step: PANEL, panel: PANEL * depth, stream: false }
                }
            }
        }
    }

    /// All rows of the range against a group of panels, over one block of the inner index.
    unsafe fn run_rows(
        &self,
        rows: &Range<usize>,
        inner: &Range<usize>,
        panels: &Range<usize>,
        right: &Ready,
        memory: &mut Memory,
    ) {
        let tiles = Tiles::current();
        let depth = inner.len();
        let accumulate = self.accumulate || inner.start > 0;
        let count = rows.len().div_ceil(tiles.rows);
        let block = (ROW_BLOCK / depth / tiles.rows).max(1);
        // Tiles of nearly equal height: two of eight rows run better than one of fourteen and one of two.
        let tile_rows = |tile: usize| {
            let range = part(rows.len(), count, tile);
            rows.start + range.start..rows.start + range.end
        };
        for first in (0..count).step_by(block) {
            let last = (first + block).min(count);
            let origin = tile_rows(first).start;
            // SAFETY: ranges lie inside the operands; packed memory is made large enough.
            unsafe {
                let by_row = self.a_step == 1;
                let in_place = by_row || (self.a_row == 1 && panels.len() < 4);
                if !in_place {
                    memory.reserve((tile_rows(last - 1).end - origin) * depth);
                    for tile in first..last {
                        let range = tile_rows(tile);
                        let from = self.a.add(range.start * self.a_row + inner.start * self.a_step);
                        let to = memory.as_mut_ptr().add((range.start - origin) * depth);
                        pack::steps_of_rows(from, (self.a_row, self.a_step), range.len(), depth, to);
                    }
                }
                let left = |range: &Range<usize>| {
                    let here = self.a.wrapping_add(range.start * self.a_row + inner.start * self.a_step);
                    if by_row {
                        (here, self.a_row, BY_ROW)
                    } else if in_place {
                        (here, self.a_step, BY_STEP)
                    } else {
                        (memory.as_ptr().add((range.start - origin) * depth), range.len(), BY_STEP)
                    }
                };
                let mut panel = panels.start;
                while panel < panels.end {
                    let column = panel * PANEL;
                    let b = right.start.add((panel - panels.start) * right.panel);
                    if by_row && count == 1 && rows.len() <= tiles.wide.len() {
                        let (width, wide) = tiles.wide[rows.len() - 1];
                        let fits = panel + width / PANEL <= panels.end && column + width <= self.columns;
                        if width >= PANEL && fits {
                            wide(&Tile {
                                depth,
                                a: left(rows).0,
                                a_stride: self.a_row,
                                b,
                                b_step: right.step,
                                b_panel: right.panel,
                                c: self.c.add(rows.start * self.c_row + column),
                                c_row: self.c_row,
                                last: 0,
                                accumulate,
                                ahead: b,
                                ahead_lines: 0,
                            });
                            panel += width / PANEL;
                            continue;
                        }
                    }
                    // While one panel is used, each tile fetches its share of the next one.
                    let tiles_here = last - first;
                    let stream = right.stream && panel + 1 < panels.end;
                    let lines = if stream { 8usize.div_ceil(tiles_here) } else { 0 };
                    for tile in first..last {
                        let range = tile_rows(tile);
                        let (a, a_stride, layout) = left(&range);
                        let share = (tile - first) * lines * (depth / 4) * 16;
                        let ahead_lines = if share < depth * PANEL { lines } else { 0 };
                        let ahead = b.wrapping_add(right.panel + share);
                        let mut call = Tile {
                            depth,
                            a,
                            a_stride,
                            b,
                            b_step: right.step,
                            b_panel: right.panel,
                            c: self.c.add(range.start * self.c_row + column),
                            c_row: self.c_row,
                            last: 0,
                            accumulate,
                            ahead,
                            ahead_lines,
                        };
                        strips(tiles, layout, range.len(), (self.columns - column).min(PANEL), &mut call);
                    }
                    panel += 1;
                }
            }
        }
    }
}

/// Calls the tiles that cover `columns <= PANEL` columns.
unsafe fn strips(tiles: &Tiles, layout: usize, rows: usize, columns: usize, call: &mut Tile) {
    let mut left = columns;
    while left > 0 {
        let strip = left.min(2 * tiles.width);
        let tile: TileFn = if strip == 2 * tiles.width {
            tiles.full[layout][rows - 1]
        } else {
            let vectors = strip.div_ceil(tiles.width);
            call.last = strip - (vectors - 1) * tiles.width;
            tiles.tail[layout][vectors - 1][rows - 1]
        };
        left -= strip;
        // SAFETY: the caller's pointers cover the strip; the next strip starts where this one ends.
        unsafe {
            tile(call);
            if left > 0 {
                call.b = call.b.add(strip);
                call.c = call.c.add(strip);
                call.ahead_lines = 0;
            }
        }
    }
}

/// The range of part `index` of `parts` nearly equal parts of `0..len`.
fn part(len: usize, parts: usize, index: usize) -> Range<usize> {
    let (small, larger) = (len / parts, len % parts);
    let start = index * small + index.min(larger);
    start..start + small + usize::from(index < larger)
}

/// Runs `worker` up to `threads` times at once.
fn fork<F: Fn() + Sync>(threads: usize, worker: &F) {
    if threads <= 1 {
        return worker();
    }
    rayon::join(|| fork(threads / 2, worker), || fork(threads - threads / 2, worker));
}
