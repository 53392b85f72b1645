//! The text of a Sudoku state, to the letter as RAGEN writes it.

use std::fmt::Write;

use super::config::RenderFormat;
use super::{Episode, Grid, SudokuConfig};

/// With more empty cells than this the possible numbers are not listed.
const MOST_LISTED: usize = 10;

/// Writes a state down.
pub(super) fn observation(episode: &Episode, config: &SudokuConfig) -> String {
    if config.render_format == RenderFormat::Simple {
        return plain(&episode.grid);
    }
    let rule = "=".repeat(50);
    let mut text = format!("{rule}\nSUDOKU PUZZLE\n{rule}\n");
    boxed(&mut text, episode, config.show_conflicts);
    text.push_str("\nLegend: [N]=initial cell, N=user-placed, *N*=conflict, .=empty");
    if let Some(feedback) = &episode.feedback {
        text.push_str("\n\n");
        text.push_str(feedback);
    }
    if config.render_format == RenderFormat::WithFeedback {
        with_feedback(&mut text, episode, config);
    }
    text
}

/// The grid with numbers separated by blanks and dots for empty cells.
fn plain(grid: &Grid) -> String {
    let row = |cells: &[u8]| {
        let words: Vec<String> = cells.iter().map(|&n| if n == 0 { ".".to_owned() } else { n.to_string() }).collect();
        words.join(" ")
    };
    grid.cells().chunks(grid.size()).map(row).collect::<Vec<_>>().join("\n")
}

fn boxed(text: &mut String, episode: &Episode, show_conflicts: bool) {
    let (grid, initial) = (&episode.grid, &episode.puzzle.initial);
    let (size, side) = (grid.size(), grid.side());
    for (r, cells) in grid.cells().chunks(size).enumerate() {
        if r > 0 && r % side == 0 {
            text.push_str(&"-".repeat(3 * size + side - 1));
            text.push('\n');
        }
        let mut line = String::new();
        for (c, &number) in cells.iter().enumerate() {
            if c > 0 && c % side == 0 {
                line.push_str("| ");
            }
            let cell = r * size + c;
            let _ = match number {
                0 => write!(line, " . "),
                n if initial.cells()[cell] != 0 => write!(line, "[{n}]"),
                n if show_conflicts && stands_twice(grid, cell) => write!(line, "*{n}*"),
                n => write!(line, " {n} "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Another cell in the units of this one holds its number. Never so while placements that conflict are refused.
fn stands_twice(grid: &Grid, cell: usize) -> bool {
    let mut without = grid.clone();
    without.set(cell, 0);
    without.conflict(cell, grid.cells()[cell]).any()
}

fn with_feedback(text: &mut String, episode: &Episode, config: &SudokuConfig) {
    let grid = &episode.grid;
    let (cells, empty) = (grid.cells().len(), grid.empty());
    if config.show_valid_numbers && (1..=MOST_LISTED).contains(&empty) {
        text.push_str("\n\n💡 VALID NUMBERS FOR EMPTY CELLS:");
        for (cell, _) in grid.cells().iter().enumerate().filter(|&(_, &n)| n == 0) {
            let (row, col) = grid.position(cell);
            let _ = write!(text, "\n  - ({},{}): {:?}", row + 1, col + 1, grid.candidates(cell));
        }
    }
    let (filled, given) = (cells - empty, cells - episode.puzzle.initial.empty());
    let _ = write!(
        text,
        "\n\nProgress: {filled}/{cells} cells filled ({given} initial, {} placed)\nSteps: {}/{}",
        filled - given,
        episode.steps,
        config.step_limit()
    );
}
