//! Models of a policy: sums in a fixed order and functions of `libm`, so that the same weights give the same bytes everywhere.

use serde::Deserialize;

/// Layers of a network at most, and neurons of a layer.
const LAYERS_MAX: usize = 8;
const NEURONS_MAX: usize = 256;
const NODES_MAX: usize = 4_096;

/// A wrong part of a model, and what would be right.
type Wrong = (String, String);

const fn wrong(value: String, expected: String) -> Wrong {
    (value, expected)
}

/// Source of a policy's actions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Outside the run (`dragstrip.gym`).
    #[default]
    Outside,
    /// Actions of earlier steps, in order; the last one is repeated.
    Log(Vec<f64>),
    /// One layer.
    Linear(Layer),
    /// Fully connected layers with an activation between them.
    Mlp(Mlp),
    /// Nodes, the root first.
    Tree(Vec<Node>),
}

/// Outputs by inputs, and an offset for each output.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    weights: Vec<Vec<f64>>,
    bias: Vec<f64>,
}

/// A fully connected network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mlp {
    layers: Vec<Layer>,
    activation: Activation,
}

/// Function of a hidden neuron.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Activation {
    Tanh,
    Relu,
}

/// A node of a tree: a question about an input, or the answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Node {
    /// At most `threshold`: node `low` is next, otherwise node `high`.
    Question {
        /// Position of the input.
        input: usize,
        /// Bound of the lower side.
        threshold: f64,
        /// Next node.
        low: usize,
        /// Next node.
        high: usize,
    },
    /// An action.
    Answer {
        /// The action.
        action: f64,
    },
}

impl Layer {
    fn outputs(&self, inputs: &[f64], outputs: &mut Vec<f64>) {
        outputs.clear();
        outputs.extend(self.weights.iter().zip(&self.bias).map(|(row, bias)| {
            row.iter().zip(inputs).fold(*bias, |sum, (weight, input)| sum + weight * input)
        }));
    }

    fn check(&self, inputs: usize, field: &str) -> Result<usize, Wrong> {
        let neurons = self.weights.len();
        if neurons == 0 || neurons > NEURONS_MAX {
            return Err(wrong(
                format!("{field}.weights: {neurons} rows"),
                format!("1 to {NEURONS_MAX}"),
            ));
        }
        if let Some(row) = self.weights.iter().find(|row| row.len() != inputs) {
            return Err(wrong(
                format!("{field}.weights: a row of {}", row.len()),
                format!("{inputs}"),
            ));
        }
        if self.bias.len() != neurons {
            return Err(wrong(
                format!("{field}.bias: {} values", self.bias.len()),
                format!("{neurons}"),
            ));
        }
        if self.weights.iter().flatten().chain(&self.bias).any(|value| !value.is_finite()) {
            return Err(wrong(
                format!("{field}: a number that is not finite"),
                "finite numbers".to_owned(),
            ));
        }
        Ok(neurons)
    }
}

impl Model {
    /// Refuses a model that does not fit its inputs and outputs.
    pub(super) fn check(&self, inputs: usize, outputs: usize) -> Result<(), Wrong> {
        let last = |neurons: usize| {
            if neurons == outputs {
                Ok(())
            } else {
                Err(wrong(format!("model: {neurons} outputs"), format!("{outputs}")))
            }
        };
        match self {
            Self::Outside => Ok(()),
            Self::Log(actions) if actions.iter().all(|action| action.is_finite()) => Ok(()),
            Self::Log(_) => Err(wrong(
                "model.log: a number that is not finite".to_owned(),
                "finite numbers".to_owned(),
            )),
            Self::Linear(layer) => layer.check(inputs, "model.linear").and_then(last),
            Self::Mlp(Mlp { layers, .. }) => {
                if layers.is_empty() || layers.len() > LAYERS_MAX {
                    let count = layers.len();
                    let expected = format!("1 to {LAYERS_MAX}");
                    return Err(wrong(format!("model.mlp.layers: {count}"), expected));
                }
                let mut width = inputs;
                for (index, layer) in layers.iter().enumerate() {
                    width = layer.check(width, &format!("model.mlp.layers[{index}]"))?;
                }
                last(width)
            }
            Self::Tree(nodes) => check_tree(nodes, inputs),
        }
    }

    /// The action for these inputs in step `number`; `choices`: the greatest output is the choice. None: it comes from outside.
    pub(super) fn action(
        &self,
        number: usize,
        choices: bool,
        scratch: &mut Scratch,
    ) -> Option<f64> {
        let Scratch { inputs, outputs } = scratch;
        match self {
            Self::Outside => None,
            Self::Log(actions) => actions.get(number).or(actions.last()).copied(),
            Self::Tree(nodes) => answer(nodes, inputs),
            Self::Linear(layer) => {
                layer.outputs(inputs, outputs);
                result(outputs, choices)
            }
            Self::Mlp(Mlp { layers, activation }) => {
                for (index, layer) in layers.iter().enumerate() {
                    layer.outputs(inputs, outputs);
                    if index + 1 < layers.len() {
                        outputs.iter_mut().for_each(|value| {
                            *value = match activation {
                                Activation::Tanh => libm::tanh(*value),
                                Activation::Relu => value.max(0.0),
                            };
                        });
                        std::mem::swap(inputs, outputs);
                    }
                }
                result(outputs, choices)
            }
        }
    }
}

/// Room of a model's calculation.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pub inputs: Vec<f64>,
    pub outputs: Vec<f64>,
}

impl Scratch {
    pub fn new() -> Self {
        Self { inputs: Vec::with_capacity(NEURONS_MAX), outputs: Vec::with_capacity(NEURONS_MAX) }
    }
}

fn result(outputs: &[f64], choices: bool) -> Option<f64> {
    if !choices {
        return outputs.first().copied();
    }
    let mut best = 0;
    for (index, value) in outputs.iter().enumerate() {
        if *value > outputs[best] {
            best = index;
        }
    }
    Some(best as f64)
}

/// Links lead forward, so that every walk ends.
fn check_tree(nodes: &[Node], inputs: usize) -> Result<(), Wrong> {
    if nodes.is_empty() || nodes.len() > NODES_MAX {
        let value = format!("model.tree: {} nodes", nodes.len());
        return Err(wrong(value, format!("1 to {NODES_MAX}")));
    }
    for (index, node) in nodes.iter().enumerate() {
        match node {
            Node::Question { input, threshold, low, high } => {
                if *input >= inputs || !threshold.is_finite() {
                    let expected = format!("an input below {inputs} and a finite threshold");
                    return Err(wrong(format!("model.tree[{index}]"), expected));
                }
                if [low, high].iter().any(|next| **next <= index || **next >= nodes.len()) {
                    let expected = format!("nodes after {index} and below {}", nodes.len());
                    return Err(wrong(
                        format!("model.tree[{index}]: next {low} and {high}"),
                        expected,
                    ));
                }
            }
            Node::Answer { action } if action.is_finite() => {}
            Node::Answer { .. } => {
                return Err(wrong(format!("model.tree[{index}]"), "a finite action".to_owned()));
            }
        }
    }
    Ok(())
}

fn answer(nodes: &[Node], inputs: &[f64]) -> Option<f64> {
    let mut index = 0;
    loop {
        match nodes.get(index)? {
            Node::Answer { action } => return Some(*action),
            Node::Question { input, threshold, low, high } => {
                index = if *inputs.get(*input)? <= *threshold { *low } else { *high };
            }
        }
    }
}
