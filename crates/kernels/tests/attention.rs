//! Attention against a plain f64 reference, by finite differences, and against the cached form bit for bit.

use ragen_kernels::attention::{Heads, Segment, attention, attention_backward};
use ragen_kernels::kv_cache::{CrewSpan, KvCache, KvSequence, Span};
use ragen_kernels::simd::{Isa, force_isa};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

fn random(rng: &mut ChaCha8Rng, n: usize) -> Vec<f32> {
    (0..n).map(|_| (rng.next_u32() as f32 / u32::MAX as f32) * 2.0 - 1.0).collect()
}

/// The rows before and including `row` in its sequence.
fn keys_of(segments: &[Segment], row: usize) -> Vec<usize> {
    let index = segments.iter().position(|s| (s.start..s.start + s.len).contains(&row)).unwrap();
    let mut rows: Vec<usize> = (segments[index].start..=row).collect();
    let mut at = segments[index].parent;
    while let Some(p) = at {
        rows.splice(0..0, segments[p].start..segments[p].start + segments[p].len);
        at = segments[p].parent;
    }
    rows
}

fn reference(heads: Heads, segments: &[Segment], q: &[f64], k: &[f64], v: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; q.len()];
    for row in 0..q.len() / (heads.query * heads.dim) {
        let keys = keys_of(segments, row);
        for h in 0..heads.query {
            let kv = h / heads.group();
            let q_at = (row * heads.query + h) * heads.dim;
            let scores: Vec<f64> = keys
                .iter()
                .map(|&j| {
                    let k_at = (j * heads.kv + kv) * heads.dim;
                    (0..heads.dim).map(|d| q[q_at + d] * k[k_at + d]).sum::<f64>() / (heads.dim as f64).sqrt()
                })
                .collect();
            let max = scores.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
            for (s, &j) in scores.iter().zip(&keys) {
                for d in 0..heads.dim {
                    out[q_at + d] += (s - max).exp() / sum * v[(j * heads.kv + kv) * heads.dim + d];
                }
            }
        }
    }
    out
}

/// Two roots; the second has two children, one of which has a child of its own.
fn tree() -> Vec<Segment> {
    vec![
        Segment { start: 0, len: 35, parent: None, position: 0 },
        Segment { start: 35, len: 7, parent: None, position: 0 },
        Segment { start: 42, len: 40, parent: Some(1), position: 7 },
        Segment { start: 82, len: 1, parent: Some(1), position: 7 },
        Segment { start: 83, len: 5, parent: Some(3), position: 8 },
    ]
}

const SHAPES: [Heads; 7] = [
    Heads { query: 4, kv: 2, dim: 12 },
    Heads { query: 3, kv: 1, dim: 16 },
    Heads { query: 2, kv: 2, dim: 33 },
    Heads { query: 9, kv: 3, dim: 64 },
    Heads { query: 4, kv: 2, dim: 32 },
    Heads { query: 7, kv: 1, dim: 32 },
    Heads { query: 2, kv: 2, dim: 64 },
];

#[test]
fn forward_and_backward_agree_with_f64() {
    let segments = tree();
    let rows = 88;
    for (i, heads) in SHAPES.into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(i as u64);
        let (nq, nk) = (rows * heads.query * heads.dim, rows * heads.kv * heads.dim);
        let (q, k, v, dout) = (random(&mut rng, nq), random(&mut rng, nk), random(&mut rng, nk), random(&mut rng, nq));
        let (mut out, mut lse) = (vec![0.0; nq], vec![0.0; rows * heads.query]);
        attention(heads, &segments, &q, &k, &v, &mut out, &mut lse);
        let wide = |x: &[f32]| x.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let (q64, k64, v64) = (wide(&q), wide(&k), wide(&v));
        let expected = reference(heads, &segments, &q64, &k64, &v64);
        for (a, b) in out.iter().zip(&expected) {
            assert!((f64::from(*a) - b).abs() < 2e-6, "{a} {b}");
        }
        let (mut dq, mut dk, mut dv) = (vec![9.0; nq], vec![9.0; nk], vec![9.0; nk]);
        attention_backward(heads, &segments, &q, &k, &v, &out, &lse, &dout, &mut dq, &mut dk, &mut dv);
        let loss = |q: &[f64], k: &[f64], v: &[f64]| -> f64 {
            reference(heads, &segments, q, k, v).iter().zip(&dout).map(|(o, d)| o * f64::from(*d)).sum()
        };
        for which in 0..3 {
            for _ in 0..12 {
                let n = if which == 0 { nq } else { nk };
                let at = rng.next_u32() as usize % n;
                let h = 1e-5;
                let at_offset = |h: f64| {
                    let (mut a, mut b, mut c) = (q64.clone(), k64.clone(), v64.clone());
                    [&mut a, &mut b, &mut c][which][at] += h;
                    loss(&a, &b, &c)
                };
                let numeric = (at_offset(h) - at_offset(-h)) / (2.0 * h);
                let analytic = f64::from([&dq, &dk, &dv][which][at]);
                assert!(
                    (numeric - analytic).abs() < 1e-4 * (1.0 + numeric.abs()),
                    "{which} {at}: {numeric} {analytic}"
                );
            }
        }
    }
}

/// A tree and the same sequences written out give the same bits forward, and gradients that add up.
#[test]
fn shared_prefixes_equal_repeated_ones() {
    let heads = Heads { query: 4, kv: 2, dim: 16 };
    let shared = [
        Segment { start: 0, len: 21, parent: None, position: 0 },
        Segment { start: 21, len: 9, parent: Some(0), position: 21 },
        Segment { start: 30, len: 33, parent: Some(0), position: 21 },
    ];
    let flat = [
        Segment { start: 0, len: 30, parent: None, position: 0 },
        Segment { start: 30, len: 54, parent: None, position: 0 },
    ];
    // Row of the tree for each row of the flat batch.
    let map: Vec<usize> = (0..30).chain(0..21).chain(30..63).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (wq, wk) = (heads.query * heads.dim, heads.kv * heads.dim);
    let (q, k, v) = (random(&mut rng, 63 * wq), random(&mut rng, 63 * wk), random(&mut rng, 63 * wk));
    let spread = |x: &[f32], w: usize| map.iter().flat_map(|&r| x[r * w..(r + 1) * w].to_vec()).collect::<Vec<f32>>();
    let (q2, k2, v2) = (spread(&q, wq), spread(&k, wk), spread(&v, wk));
    let (mut o, mut l) = (vec![0.0; q.len()], vec![0.0; 63 * heads.query]);
    attention(heads, &shared, &q, &k, &v, &mut o, &mut l);
    let (mut o2, mut l2) = (vec![0.0; q2.len()], vec![0.0; 84 * heads.query]);
    attention(heads, &flat, &q2, &k2, &v2, &mut o2, &mut l2);
    assert_eq!(spread(&o, wq), o2);
    assert_eq!(spread(&l, heads.query), l2);

    let d2 = random(&mut rng, q2.len());
    let mut d = vec![0.0; q.len()];
    for (i, &r) in map.iter().enumerate() {
        for c in 0..wq {
            d[r * wq + c] += d2[i * wq + c];
        }
    }
    let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; k.len()]);
    attention_backward(heads, &shared, &q, &k, &v, &o, &l, &d, &mut dq, &mut dk, &mut dv);
    let (mut dq2, mut dk2, mut dv2) = (vec![0.0; q2.len()], vec![0.0; k2.len()], vec![0.0; k2.len()]);
    attention_backward(heads, &flat, &q2, &k2, &v2, &o2, &l2, &d2, &mut dq2, &mut dk2, &mut dv2);
    for (grad, grad2, w) in [(&dq, &dq2, wq), (&dk, &dk2, wk), (&dv, &dv2, wk)] {
        let mut folded = vec![0.0; grad.len()];
        for (i, &r) in map.iter().enumerate() {
            for c in 0..w {
                folded[r * w + c] += grad2[i * w + c];
            }
        }
        for (a, b) in grad.iter().zip(&folded) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

/// Feeds `rows` tokens in pieces of the given sizes through the cache.
fn through_cache(heads: Heads, q: &[f32], k: &[f32], v: &[f32], pieces: &[usize]) -> Vec<f32> {
    let mut cache = KvCache::new(1, heads, 16);
    let mut sequence = KvSequence::default();
    let (wq, wk) = (heads.query * heads.dim, heads.kv * heads.dim);
    let mut out = vec![0.0; q.len()];
    let mut at = 0;
    for &n in pieces {
        cache.reserve(&mut sequence, n).unwrap();
        let span = Span { sequence: &sequence, row: 0, rows: n };
        let (qs, ks) = (at * wq..(at + n) * wq, at * wk..(at + n) * wk);
        cache.attend(0, &[span], &q[qs.clone()], &k[ks.clone()], &v[ks], &mut out[qs]);
        KvCache::commit(&mut sequence, n);
        at += n;
    }
    assert_eq!(at * wq, q.len());
    cache.release(&mut sequence);
    assert_eq!(cache.free_pages(), 16);
    out
}

#[test]
fn cached_attention_has_the_same_bits_on_every_path() {
    for heads in SHAPES {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let rows = 70;
        let (nq, nk) = (rows * heads.query * heads.dim, rows * heads.kv * heads.dim);
        let (q, k, v) = (random(&mut rng, nq), random(&mut rng, nk), random(&mut rng, nk));
        let mut first: Option<Vec<f32>> = None;
        for isa in [Isa::Avx512, Isa::Avx2, Isa::Portable] {
            force_isa(isa);
            let (mut out, mut lse) = (vec![0.0; nq], vec![0.0; rows * heads.query]);
            let segment = [Segment { start: 0, len: rows, parent: None, position: 0 }];
            attention(heads, &segment, &q, &k, &v, &mut out, &mut lse);
            let expected = first.get_or_insert(out.clone());
            assert_eq!(&out, expected, "{isa:?}");
            for pieces in [vec![70], vec![1; 70], vec![33, 1, 1, 30, 5], vec![32, 32, 6]] {
                assert_eq!(&through_cache(heads, &q, &k, &v, &pieces), expected, "{pieces:?}");
            }
        }
        force_isa(Isa::Avx512);
    }
}

/// Crews write through many pages, and find the bits of the tokens fed one after another.
#[test]
fn crews_have_the_bits_of_single_sequences() {
    let heads = Heads { query: 4, kv: 2, dim: 32 };
    let (wq, wk, rows) = (128, 64, 70);
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let data: Vec<[Vec<f32>; 3]> = (0..3)
        .map(|_| [random(&mut rng, rows * wq), random(&mut rng, rows * wk), random(&mut rng, rows * wk)])
        .collect();
    let mut cache = KvCache::new(1, heads, 16);
    let mut sequences = Vec::new();
    for _ in 0..3 {
        let mut sequence = KvSequence::default();
        cache.reserve(&mut sequence, rows).unwrap();
        sequences.push(sequence);
    }
    let last = sequences.pop().unwrap();
    let crews = vec![(sequences, [0, 1].as_slice()), (vec![last], [2].as_slice())];
    let done = cache.run_crews(crews, |crew, numbers| {
        let mut all = vec![Vec::new(); numbers.len()];
        let mut at = 0;
        // The first piece alone has several rows.
        for n in std::iter::once(9).chain(std::iter::repeat_n(1, rows - 9)) {
            let gather = |which: usize, w: usize| -> Vec<f32> {
                numbers.iter().flat_map(|&i: &usize| data[i][which][at * w..(at + n) * w].to_vec()).collect()
            };
            let (q, k, v) = (gather(0, wq), gather(1, wk), gather(2, wk));
            let mut out = vec![0.0; q.len()];
            let spans: Vec<CrewSpan> =
                (0..numbers.len()).map(|i| CrewSpan { sequence: i, row: i * n, rows: n }).collect();
            crew.attend(0, &spans, &q, &k, &v, &mut out);
            for (i, out) in out.chunks(n * wq).enumerate() {
                crew.commit(i, n);
                all[i].extend_from_slice(out);
            }
            at += n;
        }
        all
    });
    let outputs: Vec<&Vec<f32>> = done.iter().flat_map(|(_, all)| all).collect();
    for (i, [q, k, v]) in data.iter().enumerate() {
        assert_eq!(outputs[i], &through_cache(heads, q, k, v, &[rows]), "sequence {i}");
    }
    assert!(done.iter().flat_map(|d| &d.0).all(|s| s.len() == rows));
}

#[test]
fn forks_share_what_their_parent_cached() {
    let heads = Heads { query: 2, kv: 1, dim: 16 };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (q, k, v) = (random(&mut rng, 50 * 32), random(&mut rng, 50 * 16), random(&mut rng, 50 * 16));
    let expected = through_cache(heads, &q, &k, &v, &[50]);
    let mut cache = KvCache::new(1, heads, 8);
    let mut parent = KvSequence::default();
    cache.reserve(&mut parent, 40).unwrap();
    let mut out = vec![0.0; 40 * 32];
    let span = Span { sequence: &parent, row: 0, rows: 40 };
    cache.attend(0, &[span], &q[..40 * 32], &k[..40 * 16], &v[..40 * 16], &mut out);
    KvCache::commit(&mut parent, 40);
    for len in [39, 40, 32, 5] {
        let mut child = cache.fork(&parent, len).unwrap();
        let n = 50 - len;
        cache.reserve(&mut child, n).unwrap();
        let mut tail = vec![0.0; n * 32];
        let span = Span { sequence: &child, row: 0, rows: n };
        cache.attend(0, &[span], &q[len * 32..], &k[len * 16..], &v[len * 16..], &mut tail);
        assert_eq!(tail, expected[len * 32..]);
        cache.release(&mut child);
    }
    cache.release(&mut parent);
    assert_eq!(cache.free_pages(), 8);
}

#[test]
fn a_full_cache_says_so_and_takes_nothing() {
    let heads = Heads { query: 1, kv: 1, dim: 4 };
    let mut cache = KvCache::new(1, heads, 2);
    let mut a = KvSequence::default();
    cache.reserve(&mut a, 40).unwrap();
    let mut b = KvSequence::default();
    let error = cache.reserve(&mut b, 1).unwrap_err();
    assert_eq!((error.wanted, error.free), (1, 0));
    cache.release(&mut a);
    cache.reserve(&mut b, 33).unwrap();
}

#[test]
fn a_reservation_for_tokens_that_never_came_serves_later_ones() {
    let mut cache = KvCache::new(1, Heads { query: 1, kv: 1, dim: 4 }, 3);
    let mut a = KvSequence::default();
    cache.reserve(&mut a, 70).unwrap();
    KvCache::commit(&mut a, 10);
    // 3 pages are reserved, 1 would do.
    assert_eq!((KvCache::pages_needed(&a, 5), cache.free_pages()), (0, 0));
    cache.reserve(&mut a, 5).unwrap();
    KvCache::commit(&mut a, 5);
    cache.reserve(&mut a, 81).unwrap();
    assert_eq!(cache.reserve(&mut a, 82).unwrap_err().wanted, 1);
    cache.release(&mut a);
    assert_eq!(cache.free_pages(), 3);
}
