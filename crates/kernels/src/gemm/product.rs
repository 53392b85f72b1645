//! The loops around the tile: blocks of the inner index, groups of panels, blocks of rows, and their split over threads.
//!
//! Every task writes a rectangle of the output that no other task touches and walks the inner index upwards, so how
//! the work is cut changes no bit.

use super::pack::{self, Memory, STEP};
use super::tile::{BY_ROW, BY_STEP, PANEL, Tile, TileFn, Tiles};
use super::transpose;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Longest block of the inner index: a panel of this depth and the rows beside it stay in the second-level cache.
const MAX_DEPTH: usize = 768;
/// Depth of a panel that fits the first-level cache beside a few rows.
const SHORT_DEPTH: usize = 192;
/// Elements of the left-hand operand kept in the second-level cache.
const ROW_BLOCK: usize = 160 << 10;
/// The same for products of up to [`SHALLOW`] inner steps, whose panels are short: all rows of the block pass by each of
/// them, and half a megabyte of second-level cache is to hold the block.
const SHALLOW_ROW_BLOCK: usize = 40 << 10;
const SHALLOW: usize = 256;
/// Elements of panels packed at once.
const PANEL_GROUP: usize = 96 << 10;
/// Largest right-hand operand, in elements, that is read in place by several tiles.
const IN_PLACE: usize = 16 << 10;
/// A right-hand operand below this many elements is taken to be in the second-level cache already: fetching ahead would
/// only cost.
const IN_CACHE: usize = 90 << 10;
/// From so many rows on, packing a weight on the way and using it overlap well enough to go panel by panel.
const MANY_ROWS: usize = 33;
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
}

/// Memory for a tile to fetch on its way: per four inner steps so many cache lines, then a step.
struct Ahead {
    start: *const f32,
    lines: usize,
    step: usize,
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
        let workers = threads.min(tasks);
        // Every worker has a queue of neighbouring tasks, because what it fetches ahead belongs to the next one, and
        // helps out with the other queues at the end: a core that is slow or busy elsewhere gets through fewer tasks.
        let queues: Vec<AtomicUsize> =
            (0..workers).map(|worker| AtomicUsize::new(part(tasks, workers, worker).start)).collect();
        fork(0..workers, &|worker| {
            for queue in (worker..workers).chain(0..worker) {
                let end = part(tasks, workers, queue).end;
                loop {
                    let task = queues[queue].fetch_add(1, Ordering::Relaxed);
                    if task >= end {
                        break;
                    }
                    let rows = part(self.rows, row_parts, task / panel_parts);
                    let columns = part(panels, panel_parts, task % panel_parts);
                    // SAFETY: the caller's contract; rectangles of different tasks are disjoint.
                    unsafe { self.run(rows, columns) };
                }
            }
        });
    }

    /// Parts of the rows and of the panels for `threads` threads.
    fn grid(&self, threads: usize) -> (usize, usize) {
        let panels = self.columns.div_ceil(PANEL);
        // Few rows: panels in small chunks, each read once, by one thread (by fours where the wide tiles take four).
        // Many rows: chunks of three or more, so that a row is used several times once it is loaded.
        let chunk = match self.rows {
            0..=2 => 4,
            3..=256 => 1,
            _ => 3,
        };
        let panel_parts = (panels / chunk).clamp(1, 8 * threads);
        // What is missing to a few tasks a thread comes from a split of the rows.
        let row_parts = (self.rows / 56).clamp(1, (4 * threads).div_ceil(panel_parts));
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
            // Two tiles share the work on weights from memory: the second one finds a short panel in the first cache.
            let two_tiles = rows.len().div_ceil(Tiles::current().rows) == 2;
            let longest = match self.b {
                Right::Panels(_) if two_tiles => SHORT_DEPTH,
                _ => MAX_DEPTH,
            };
            let blocks = self.depth.div_ceil(longest);
            for block in 0..blocks {
                let inner = part(self.depth, blocks, block);
                let group = match self.b {
                    Right::Panels(_) => panels.len(),
                    // Rows that fit the cache beside a panel are there for the next one, too.
                    Right::Transposed(..) if rows.len() >= MANY_ROWS && rows.len() * inner.len() <= ROW_BLOCK => 1,
                    // Packed rows are packed anew for every group.
                    _ if self.a_step != 1 => (2 * PANEL_GROUP / (PANEL * inner.len())).max(1),
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
                    Ready { start, step: PANEL, panel: PANEL * self.depth }
                }
                Right::Rows(start, stride)
                    if rows <= Tiles::current().rows || self.columns * self.depth <= IN_PLACE =>
                {
                    let start = start.add(inner.start * stride + column);
                    Ready { start, step: stride, panel: PANEL }
                }
                Right::Rows(start, stride) => {
                    memory.reserve(panels.len() * depth * PANEL);
                    let start = start.add(inner.start * stride + column);
                    pack::panels_of_columns(start, stride, columns, depth, memory.as_mut_ptr());
                    Ready { start: memory.as_ptr(), step: PANEL, panel: PANEL * depth }
                }
                Right::Transposed(start, stride) => {
                    memory.reserve(panels.len() * depth * PANEL);
                    for j in (0..columns).step_by(PANEL) {
                        let from = start.add((column + j) * stride + inner.start);
                        let to = memory.as_mut_ptr().add(j * depth);
                        transpose::panel_of_rows(from, stride, (columns - j).min(PANEL), depth, to);
                    }
                    Ready { start: memory.as_ptr(), step: PANEL, panel: PANEL * depth }
                }
            }
        }
    }

    /// What to fetch during the call of `tile`, one of `tiles`, on `panel` of the `group` ready: its share of what is
    /// needed next, which is the next panel when packed, else what the next group of panels will be packed from.
    fn ahead(&self, inner: &Range<usize>, group: &Range<usize>, panel: usize, tile: usize, tiles: usize) -> Ahead {
        let depth = inner.len();
        // Eight lines for every four steps of a panel, shared among the tiles.
        let lines = 8usize.div_ceil(tiles);
        let steps = depth / 4;
        let call = (panel - group.start) * tiles + tile;
        let column = group.end * PANEL;
        let nothing = Ahead { start: self.a, lines: 0, step: 0 };
        if self.columns * self.depth <= IN_CACHE {
            return nothing;
        }
        match self.b {
            Right::Panels(start) => {
                let share = tile * lines * steps * 16;
                if (panel + 1) * PANEL >= self.columns || share >= depth * PANEL {
                    return nothing;
                }
                let next = (panel + 1) * PANEL * self.depth + inner.start * PANEL;
                Ahead { start: start.wrapping_add(next + share), lines, step: lines * 16 }
            }
            Right::Transposed(start, stride) => {
                let share = call * lines * steps * 16;
                if self.rows < MANY_ROWS
                    || column >= self.columns
                    || stride != depth
                    || share >= group.len() * depth * PANEL
                {
                    return nothing;
                }
                let start = start.wrapping_add(column * stride + share);
                Ahead { start, lines, step: lines * 16 }
            }
            // Rows would have to be fetched in pieces from many pages, which gains nothing.
            Right::Rows(..) => nothing,
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
        let row_block = if depth <= SHALLOW { SHALLOW_ROW_BLOCK } else { ROW_BLOCK };
        let block = (row_block / depth / tiles.rows).max(1);
        // Tiles of nearly equal height: two of eight rows run better than one of fourteen and one of two.
        let tile_rows = |tile: usize| {
            let range = part(rows.len(), count, tile);
            rows.start + range.start..rows.start + range.end
        };
        for first in (0..count).step_by(block) {
            let last = (first + block).min(count);
            // SAFETY: ranges lie inside the operands; packed memory is made large enough.
            unsafe {
                let by_row = self.a_step == 1;
                let in_place = by_row || (self.a_row == 1 && panels.len() < 4);
                if !in_place {
                    memory.reserve((last - first) * depth * STEP);
                    for tile in first..last {
                        let range = tile_rows(tile);
                        let from = self.a.add(range.start * self.a_row + inner.start * self.a_step);
                        let to = memory.as_mut_ptr().add((tile - first) * depth * STEP);
                        pack::steps_of_rows(from, (self.a_row, self.a_step), range.len(), depth, to);
                    }
                }
                let left = |tile: usize, range: &Range<usize>| {
                    let start = range.start * self.a_row + inner.start * self.a_step;
                    if by_row {
                        (self.a.add(start), self.a_row, BY_ROW)
                    } else if in_place {
                        (self.a.add(start), self.a_step, BY_STEP)
                    } else {
                        (memory.as_ptr().add((tile - first) * depth * STEP), STEP, BY_STEP)
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
                                a: left(first, rows).0,
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
                                ahead_step: 0,
                            });
                            panel += width / PANEL;
                            continue;
                        }
                    }
                    for tile in first..last {
                        let range = tile_rows(tile);
                        let (a, a_stride, layout) = left(tile, &range);
                        let ahead = self.ahead(inner, panels, panel, tile - first, last - first);
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
                            ahead: ahead.start,
                            ahead_lines: ahead.lines,
                            ahead_step: ahead.step,
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

/// Calls `worker` with every number of the range, at once if threads are free.
fn fork<F: Fn(usize) + Sync>(workers: Range<usize>, worker: &F) {
    if workers.len() <= 1 {
        return workers.for_each(worker);
    }
    let middle = workers.start + workers.len() / 2;
    rayon::join(|| fork(workers.start..middle, worker), || fork(middle..workers.end, worker));
}
