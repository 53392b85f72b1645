//! Exact state of training: what was saved comes back, another model's state does not.

use ragen_model::config::Family;
use ragen_model::init::random_params;
use ragen_model::trainable::{AdamW, Limits, OptimizerStep, Trainable};
use ragen_model::transformer::Transformer;

use super::tiny_config;

fn model(layers: usize, with_value: bool) -> Trainable {
    let mut config = tiny_config(Family::Llama, 16);
    config.num_hidden_layers = layers;
    let mut params = random_params(&config, 3);
    let shape = Transformer::new(config, with_value);
    params.resize(shape.layout().len(), 0.0);
    Trainable::new(shape, params, Limits::default())
}

#[test]
fn state_comes_back_and_a_larger_models_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.safetensors");
    let step = OptimizerStep { adamw: AdamW { lr: 0.1, ..AdamW::default() }, grad_clip: 1.0 };
    for moments in [false, true] {
        let mut large = model(2, true);
        if moments {
            large.step(step);
        }
        large.save_state(&path).unwrap();
        let mut again = model(2, true);
        again.load_state(&path).unwrap();
        assert_eq!(again.params(), large.params());
        // Each has all of its own tensors in the file, and others besides.
        for mut other in [model(1, true), model(2, false)] {
            let before = other.params().to_vec();
            let message = other.load_state(&path).unwrap_err().to_string();
            assert!(message.contains("has no place in this model"), "{message}");
            assert_eq!(other.params(), before);
        }
    }
}
