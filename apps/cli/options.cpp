#include "command.hpp"

#include <limits>

#include <normscope/core/norm_kind.hpp>

namespace normscope::cli {
namespace {

constexpr double largest = 1e300;

const std::vector<Word>& table() {
  static const std::vector<Word> words{
      // What every subcommand may write.
      {"-o,--output", "FILE", "Write {}"},
      {"--certificates", "FOLDER", "Write {} into FOLDER as .npy files"},
      {"--figures", "FOLDER", "Write {} as Vega-Lite figures (.vl.json) into FOLDER"},
      {"--resume", "FILE", "Save unfinished work in FILE and continue from it; Ctrl-C saves it too"},
      {"--check", "", "Exit with status 1 unless {}, or 4 if that is undecided"},

      // A model.
      {"--member", "NAME",
       "State dict to read from a PyTorch file that holds several, such as ema/module; like FILE:NAME"},
      {"--arch", "NAME", "Architecture, if the file does not state it: a short name such as gpt2 or llama"},
      {"--heads", "N", "Attention heads per layer, if neither configuration nor shapes determine them", "",
       counts(1, 1'000'000)},
      {"--names", "FILE", "Names of tokens: tokenizer.json, vocab.json, vocab.txt or llama2.c's .bin"},
      {"--activation", "NAME", "Activation function"},
      {"--only", "NAME", "Analyse only the norm of that name"},

      // A norm.
      {"--norm", "KIND", "Kind of norm"},
      {"--gain", "ARRAY", "Gain: G.npy, G.npz:NAME, MODEL:TENSOR or 1,2,0.5", "ones"},
      {"--gain-offset", "X", "Number added to every gain entry", "the model's, e.g. 1 for Gemma, else 0",
       numbers(-largest, largest)},
      {"--bias", "ARRAY", "Bias, given like the gain", "the model's, else zeros"},
      {"--groups", "K", "Number of groups, each normalized separately", "the model's, else 1",
       counts(1, largest_count)},
      {"--eps", "E", "Added to the mean square, for spherical to the squared length", "",
       numbers(0.0, largest)},
      {"--alpha", "A", "Factor of x in an elementwise norm", "the model's, else 1",
       numbers(-largest, largest)},
      {"--shift", "S", "Added to alpha times x in derf", "the model's, else 0", numbers(-largest, largest)},
      {"--step", "STEP", "Apply only this step of the norm"},
      {"--similar-to", "ARRAY", "Also compare the image with that of this gain"},
      {"--axes", "K", "Number of principal axes to give, longest first", "", counts(0, largest_count)},
      {"--null-space", "", "Also give an orthonormal basis of the null space"},

      // How much, how exactly, from which random numbers.
      {"--width", "N", "Number of features", "", counts(1, largest_count)},
      {"--rows", "N", "Number of rows drawn at random", "", counts(1, largest_count)},
      {"--seed", "S", "Random seed", "1", seeds()},
      {"--budget", "N", "Work limit in billions of multiplications {}; the rest is skipped and listed", "",
       numbers(0.0, 1e9)},
      {"--tolerance", "T", "What counts as a tie, or as equal{}", "1e-12", numbers(0.0, 1.0)},
      {"--rank-tolerance", "T", "Relative extent below which rows count as flat in a direction", "1e-12",
       numbers(0.0, 1.0)},
      {"--exact", "", "Decide in rational arithmetic, with integer certificates, what floating point cannot"},

      // report, trace, heads, reach
      {"--deep", "", "Put every semi-axis into the JSON, and analyse vocabularies of any size"},
      {"--no-vocabulary", "", "Analyse only norms and heads"},
      {"--text", "FILE",
       "Text in UTF-8 that the model reads, up to 16 KiB of it; the page then shows what its tokens do in "
       "the "
       "norms"},
      {"--tokens", "I1,I2,...", "Tokens (ids) in place of a text"},
      {"--likeliest", "N", "Next tokens listed for each position", "10", counts(1, 1000)},
      {"--attention", "N", "Attention weights in the JSON, of all heads together: those of the last tokens",
       "65536", counts(0, 1'000'000'000)},
      {"--activations", "FILE",
       "Write statistics of the norms' inputs, as the Python package's watch does, as JSON"},
      {"--context", "N", "Largest context, in positions, for the bounds of rotary heads", "the model's own",
       counts(1, 1'000'000'000'000)},
      {"--queries", "",
       "Include in the JSON the queries that attain the bounds, their keys, and inputs of the norm that "
       "give them"},
      {"--proofs", "", "Include in the JSON the certificate of each bound"},
      {"--unembedding", "ARRAY", "Instead of MODEL: unembedding matrix, tokens x width"},
      {"--unembedding-bias", "ARRAY", "Bias of the unembedding, one number per token"},
      {"--probability", "HOW",
       "Bound the largest probabilities by margins (quick), by optimization (full) or by both (auto)",
       "auto"},
      {"--probability-gap", "G",
       "Gap between the bounds of a log-probability at which their optimization stops", "1e-3",
       numbers(0.0, 1e6)},
      {"--sharpen", "N", "Optimize margin and probability of the N tokens that are closest to unreachable",
       "20", counts(0, largest_count)},
      {"--sharpen-tokens", "I1,I2,...", "Optimize the largest probability of these tokens (ids) too"},

      // compare
      {"--explain", "NORM", "Print all that was compared of this norm, reader by reader"},

      // attribute
      {"--target", "TOKEN", "Token whose logit is read: its id, its name in the vocabulary, or its text"},
      {"--against", "TOKEN", "Read the target's logit less this token's", "none"},
      {"--at", "N", "Position that is read, from 0", "the last", counts(0, largest_count)},
      {"--replace-with", "WHAT",
       "What stands in place of a removed component: zero, mean (its mean over the positions read so far) or "
       "an ARRAY with a row for each component",
       "zero"},
      {"--components", "ARRAY",
       "Rows that add up to the final norm's input at the position, in place of the model's own components"},
      {"--keep", "NAME1,NAME2,...", "Also read the logit with all other components replaced by their means"},
      {"--rules", "", "Print the columns of other rules, too"},
      {"--all-contexts", "",
       "Bound each component's share in every context whose final norm divides by no less than here"},
      {"--most-removed", "N", "Components that may be removed together, for the bounds over every set", "10",
       counts(0, largest_count)},

      // select, separate, verify
      {"--random-table", "", "Tabulate how often standard normal keys cannot be selected, instead of KEYS"},
      {"--runs", "N", "Random key sets per table cell", "100", counts(1, largest_count)},
      {"--most-width", "N", "Largest key width in the table", "15", counts(3, largest_count)},
      {"--most-keys", "N", "Largest number of keys in the table", "60", counts(3, largest_count)},
      {"--labels", "ARRAY", "Integer class of each sample of A, whose first axis is the samples"},
      {"--classes", "L1,L2,...", "Use only these labels", "all"},
      {"--folder", "FOLDER", "Folder of the certificates that are not in RESULT", "the one it names"},

      // rewrite
      {"--fold", "WHAT",
       "Fold the gain and bias of every norm into the linear maps that read it, where that is exact"},
      {"--migrate", "",
       "Move powers of two from each norm's gain and bias into its readers, so that the features have "
       "similar ranges"},
      {"--center", "",
       "Remove the mean from all that writes to the residual stream, so that RMSNorms can replace its "
       "LayerNorms"},
      {"--rotate", "random:SEED|FILE",
       "Rotate the residual stream by a random orthogonal matrix (random:SEED) or by one from a file; its "
       "norms must have no gain, as after --fold gains"},
      {"--untie", "",
       "Store the unembedding as a tensor of its own if the file shares it with the token embedding"},
      {"--norm-inputs", "FILE",
       "Inputs of norms, on which old and new outputs are compared: an .npz or .safetensors file with one "
       "array per norm, under its name, or NORM=FILE.npy; may be repeated"},
      {"--undo", "", "Restore the checkpoint that IN was rewritten from, by the recipe beside IN"},
      {"--dry-run", "", "Print what would happen to each norm, and write nothing"},

      // signature
      {"--ids", "ARRAY",
       "Token of each value, where rows do not have all tokens; one row of ids serves every row"},
      {"--temperature", "T", "Number that the logits were divided by", "1", numbers(1e-6, 1e6)},
      {"--dtype", "TYPE", "Type in which the model computed the logits",
       "the smallest that holds the first rows"},
      {"--least-mean-square", "M",
       "Mean square that the final norm's input never falls below; rows that need less are then not this "
       "model's",
       "rows that need less than 100 eps are not decided", numbers(0.0, largest)},
      {"--soft-cap", "C", "C of C tanh(logit/C), which the model applies last", "none",
       numbers(1e-6, largest)},
      {"--rank", "N", "Number of axes, where outputs have more noise than their type", "found from the rows",
       counts(1, largest_count)},

      // curvature, nets
      {"--rows-out", "FILE.npy",
       "Write the curvature at each row, rows x group counts (inf: a constant group at eps 0)"},
      {"--mode", "MODE", "Fold as published (paper), or as a variant that is robust to rounding (stable)",
       "stable"},
      {"--random-labels", "C", "Draw random labels of C classes, instead of LABELS", "",
       counts(1, largest_count)},
      {"--precision", "TYPE", "Numbers that the net computes with"},
      {"--drop-conflicts", "", "Give equal rows with different labels the label of the first"},
      {"--folds", "FILE", "Write what each layer folds, one line of JSON per layer"},
      {"--trace", "FILE.npy", "Write the output of every layer, concatenated along the columns"},
      {"--depth", "N", "Layers before the linear head", "the task's, else 2", counts(0, largest_count)},
      {"--affine", "", "Learn a gain and a bias in every norm"},
      {"--optimizer", "NAME", "Optimizer", "adam"},
      {"--lr", "X", "Learning rate", "", numbers(0.0, std::numeric_limits<double>::max())},
      {"--schedule", "NAME", "Learning-rate schedule", "the task's, else constant"},
      {"--steps", "N", "Training steps", "the task's, else 8000", counts(1, largest_count)},
      {"--batch", "N", "Samples per step", "the task's, else all", counts(1, largest_count)},
      {"--record-every", "N", "Steps between records of loss and accuracy", "10", counts(1, largest_count)},
      {"--noise", "X", "Standard deviation of noise added to every feature of a task's samples", "0",
       numbers(0.0, 1e6)},
      {"--seeds", "N", "Number of seeds to train with, keeping the best net", "the task's, else 1",
       counts(1, largest_count)},
      {"--cell", "NAME", "Recurrent cell", "lstm"},
      {"--language", "NAME", "Language: a^n b^n or a^n b^n c^n", "anbn"},
      {"--train", "", "Train a network; without it, a stored one is used (lstm and gru only)"},
      {"--head", "HEAD", "Training target", "next_symbol"},
      {"--epochs", "N", "Largest number of epochs", "the task's", counts(1, largest_count)},
      {"--longest", "N", "Largest n in the training words", "100; 50 for anbncn", counts(1, 1000)},
      {"-n", "N", "n of the word whose states are shown", "100", counts(0, 10000)},
      {"--up-to", "N", "Largest n tested", "300", counts(5, 1000)},
      {"--states", "FILE", "Write every state, gate and probability over the word as JSON"},

      {"--port", "N", "Port of 127.0.0.1 to listen on", "any free port", counts(0, 65535)},
  };
  return words;
}

}  // namespace

const Word* find_word(const std::string& name) {
  for (const Word& word : table()) {
    if (name == word.name) return &word;
  }
  return nullptr;
}

}  // namespace normscope::cli
