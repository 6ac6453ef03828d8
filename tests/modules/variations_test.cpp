#include <algorithm>
#include <cmath>
#include <set>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/kernel_check.hpp"
#include "support/layer_case.hpp"
#include "support/layer_variations.hpp"
#include "support/linear_parts.hpp"
#include "taper/autograd.hpp"
#include "taper/io.hpp"

using namespace taper;
using nlohmann::json;
using nn::LayerType;
using test::scattered;

// What must hold for every layer under every option, on inputs without ties and kinks. Each check says what is wrong,
// "" if nothing.
namespace {

/// One layer with one set of options, in float64.
struct Subject {
  const LayerType& type;
  const json& options;
  bool training = true;

  auto module(DType dtype = DType::float64) const {
    auto built = test::build(type, options, dtype);
    built->train(training);
    return built;
  }
};

std::vector<Tensor> inputs_of(const Subject& subject, DType dtype = DType::float64, std::int64_t batch = 0) {
  const bool positive = subject.type.name.starts_with("LPPool");  // roots
  std::vector<Tensor> inputs = test::random_inputs(subject.type, dtype, batch);
  std::uint64_t seed = 41;
  for (Tensor& input : inputs)
    if (is_floating(input.dtype())) {
      const Tensor values = scattered(input.shape(), seed++);
      input = to(positive ? values * 0.4 + 1.0 : values, dtype).detach().requires_grad_();
    }
  return inputs;
}

std::vector<Tensor> leaves_of(nn::Module& module, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs)
    if (is_floating(input.dtype())) leaves.push_back(input);
  for (const Tensor& parameter : module.parameters()) leaves.push_back(parameter);
  return leaves;
}

/// A number that depends on every element of every floating result.
Tensor summary(nn::Module& module, const std::vector<Tensor>& inputs) {
  Tensor total = scalar(0, DType::float64);
  std::uint64_t seed = 91;
  for (const Tensor& result : test::call_outputs(module, inputs))
    if (is_floating(result.dtype())) total = total + (result * scattered(result.shape(), seed++)).sum();
  return total;
}

std::string inference_problem(const Subject& subject) {
  const auto options = test::options_from(subject.type, subject.options);
  const Shape inferred = subject.type.infer(options.get(), subject.type.example_inputs);
  const Shape given = test::call(*subject.module(), inputs_of(subject)).shape();
  return inferred == given ? "" : "infers " + to_string(inferred) + ", gives " + to_string(given);
}

bool is_given(const Subject& subject, const char* key) {
  return subject.options.contains(key) && !subject.options[key].is_null();
}

/// Whether a call changes parameters.
bool bounds_parameters(const Subject& subject) { return is_given(subject, "max_norm"); }

/// Options by which a gradient is not the derivative: rows that stay as they are, means in place of sums.
bool bends_gradients(const Subject& subject) {
  return subject.options.value("scale_grad_by_freq", false) || is_given(subject, "padding_idx") ||
         bounds_parameters(subject);
}

/// The derivative in a random direction of all inputs and parameters at once, against the five-point stencil.
std::string gradient_problem(const Subject& subject) {
  if (bends_gradients(subject)) return "";
  const auto module = subject.module();
  const auto inputs = inputs_of(subject);
  const auto leaves = leaves_of(*module, inputs);
  if (leaves.empty()) return "";
  const Tensor value = summary(*module, inputs);
  if (std::isnan(value.item())) return "gives NaN";
  if (!value.requires_grad()) return "";
  value.backward();
  NoGradGuard guard;
  for (std::uint64_t direction = 0; direction < 3; ++direction) {
    double analytic = 0;
    std::vector<Tensor> steps, kept;
    for (const Tensor& leaf : leaves) {
      steps.push_back(scattered(leaf.shape(), 7 * direction + steps.size()));
      kept.push_back(clone(leaf));
      if (leaf.grad().defined()) analytic += (leaf.grad() * steps.back()).sum().item();
    }
    const double numeric = test::slope(
        [&](double t) {
          for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].copy_(kept[i] + steps[i] * t);
          return summary(*module, inputs).item();
        },
        0, 1e-4);
    for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].copy_(kept[i]);
    const double scale = std::max(1.0, std::abs(value.item()));
    if (!(std::abs(analytic - numeric) <= 1e-9 * scale + 1e-7 * std::abs(numeric)))
      return "direction " + std::to_string(direction) + ": analytic " + std::to_string(analytic) + ", numeric " +
             std::to_string(numeric);
  }
  return "";
}

/// Notes the layer when it is linear in its input.
std::string adjoint_problem(const Subject& subject, std::set<std::string>& linear) {
  if (bends_gradients(subject)) return "";
  const auto module = subject.module();
  const auto inputs = inputs_of(subject);
  const auto report = test::check_adjoint([&] { return test::call(*module, inputs); }, leaves_of(*module, inputs));
  if (!report.linear.empty() && report.linear[0] == 0) linear.insert(subject.type.name);
  return report.problem;
}

/// Options for which the first dimension is not the batch, or evaluation takes its samples together.
bool mixes_samples(const Subject& subject) {
  if (subject.type.name.starts_with("BatchNorm") && !subject.options.value("track_running_stats", true)) return true;
  for (const std::string& key : test::keys_of(subject.type))
    if (key.find("dim") != std::string::npos) return true;
  return subject.options.value("batch_first", true) == false;
}

std::vector<Tensor> picked_rows(const std::vector<Tensor>& inputs, const Tensor& index) {
  std::vector<Tensor> picked;
  for (const Tensor& input : inputs) picked.push_back(index_select(input.detach(), 0, index));
  return picked;
}

/// In evaluation, a sample gets the same bits wherever it stands in the batch.
std::string permutation_problem(const Subject& subject) {
  if (subject.training || mixes_samples(subject)) return "";
  const auto module = subject.module();
  const auto x = inputs_of(subject, DType::float64, 5);
  const Tensor order = tensor({3, 0, 4, 1, 2});
  const Tensor expected = index_select(test::call(*module, x), 0, order);
  return test::same_bits(test::call(*module, picked_rows(x, order)).to_vector<double>(), expected.to_vector<double>())
             ? ""
             : "depends on the place in the batch";
}

/// In evaluation, a batch in two parts gives what it gives in one.
std::string splitting_problem(const Subject& subject) {
  if (subject.training || mixes_samples(subject)) return "";
  const auto module = subject.module();
  const auto x = inputs_of(subject, DType::float64, 5);
  const Tensor first = test::call(*module, picked_rows(x, tensor({0, 1}))),
               rest = test::call(*module, picked_rows(x, tensor({2, 3, 4})));
  const Tensor parts = cat({first, rest}, 0), whole = test::call(*module, x);
  // Products of very few rows have an order of their own, which a layer meets whose rows are the samples alone.
  if (subject.type.example_inputs[0].rank() == 2 && !module->parameters().empty())
    return test::golden_difference(parts, whole, {.relative = 1e-14, .floor = 1});
  return test::same_bits(parts.to_vector<double>(), whole.to_vector<double>()) ? ""
                                                                               : "depends on the size of the batch";
}

std::string unbatched_problem(const Subject& subject) {
  if (subject.training || mixes_samples(subject) || test::reads_only_batches(subject.type)) return "";
  const auto module = subject.module();
  const auto x = inputs_of(subject);
  const Tensor batched = test::call(*module, x);
  for (std::int64_t row = 0; row < batched.size(0); ++row) {
    std::vector<Tensor> alone;
    for (const Tensor& input : x) alone.push_back(input.select(0, row));
    const std::string problem =
        test::golden_difference(test::call(*module, alone), batched.select(0, row), {.relative = 1e-13, .floor = 1});
    if (!problem.empty()) return "row " + std::to_string(row) + " alone: " + problem;
  }
  return "";
}

/// An empty batch gives an empty result, gradients of no elements, and zeros for the parameters.
std::string empty_batch_problem(const Subject& subject) {
  if (mixes_samples(subject)) return "";
  const auto module = subject.module();
  std::vector<Tensor> x;
  for (const Tensor& input : inputs_of(subject))
    x.push_back(empty(input.shape().with(0, 0), input.dtype()).requires_grad_(is_floating(input.dtype())));
  const Tensor full = test::call(*module, inputs_of(subject)), y = test::call(*module, x);
  if (!(y.shape() == full.shape().with(0, 0))) return "gives " + to_string(y.shape());
  if (!y.requires_grad()) return "";
  y.backward(empty_like(y).detach());
  for (const Tensor& parameter : module->parameters())
    if (parameter.grad().defined() && parameter.grad().abs().max().item() != 0) return "a gradient that is not zero";
  return "";
}

/// In evaluation nothing is drawn and nothing is remembered.
std::string evaluation_problem(const Subject& subject) {
  if (subject.training || bounds_parameters(subject)) return "";
  const auto module = subject.module();
  const auto x = inputs_of(subject);
  std::vector<Tensor> before;
  for (const auto& [name, tensor] : module->state_dict()) before.push_back(clone(tensor.detach()));
  const auto first = module->forward_all(x).to_vector<double>();
  if (!test::same_bits(module->forward_all(x).to_vector<double>(), first)) return "differs when called again";
  std::size_t i = 0;
  for (const auto& [name, tensor] : module->state_dict())
    if (!test::same_bits(tensor.to_vector<double>(), before[i++].to_vector<double>())) return "changes " + name;
  return "";
}

std::string saving_problem(const Subject& subject) {
  const auto saved = subject.module(DType::float32);
  if (saved->state_dict().empty()) return "";
  const auto loaded = subject.type.make(test::options_from(subject.type, subject.options).get());
  loaded->train(subject.training);
  loaded->load_state_dict(io::safetensors_from_bytes(io::safetensors_to_bytes(saved->state_dict())).tensors);
  const auto x = inputs_of(subject, DType::float32);
  return test::same_bits(test::call(*loaded, x).to_vector<float>(), test::call(*saved, x).to_vector<float>())
             ? ""
             : "differs when loaded";
}

/// The result and all gradients.
std::string threads_problem(const Subject& subject) {
  const auto step = [&] {
    const auto module = subject.module(DType::float32);
    const auto x = inputs_of(subject, DType::float32, 127);
    const Tensor y = test::call(*module, x);
    std::vector<float> all = y.to_vector<float>();
    if (!y.requires_grad()) return all;
    y.backward(to(scattered(y.shape(), 5), y.dtype()));
    for (const Tensor& leaf : leaves_of(*module, x)) {
      if (!leaf.grad().defined()) continue;
      const auto gradient = leaf.grad().to_vector<float>();
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  };
  return test::same_on_any_threads(step) ? "" : "differs between numbers of threads";
}

struct SubjectCheck {
  const char* what;
  std::string (*problem)(const Subject&);
};
constexpr SubjectCheck kSubjectChecks[] = {{"infers the shape it gives", inference_problem},
                                           {"has the gradients of its values", gradient_problem},
                                           {"treats a sample alike at every place", permutation_problem},
                                           {"treats a batch in parts as in one", splitting_problem},
                                           {"treats a sample alone as in a batch", unbatched_problem},
                                           {"takes an empty batch", empty_batch_problem},
                                           {"only computes in evaluation", evaluation_problem},
                                           {"is the same after saving and loading", saving_problem}};

std::string problem_of(const SubjectCheck& check, const Subject& subject) {
  try {
    return check.problem(subject);
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// All that is wrong with a layer, one line for each option set and check.
std::string variation_problems(const LayerType& type, std::set<std::string>& linear) {
  std::string all;
  int count = 0;
  for (const json& options : test::variations(type))
    for (const bool training : {true, false}) {
      const Subject subject{type, options, training};
      const auto note = [&](const char* what, const std::string& problem) {
        if (!problem.empty())
          all += type.name + options.dump() + (training ? "" : " in evaluation") + " " + what + ": " + problem + "\n";
      };
      for (const SubjectCheck& check : kSubjectChecks) note(check.what, problem_of(check, subject));
      note("has its adjoint as gradient", adjoint_problem(subject, linear));
      if (count++ % 6 == 0)  // by far the slowest
        note("gives the same bits on any number of threads", problem_of({"", threads_problem}, subject));
    }
  return all;
}

// --- a layer with mistakes under one option -------------------------------------------------------------------------

enum class OptionMistake { none, gradient, adjoint, shape, place, batch, alone, empty, state, memory };

struct FlawedSubjectOptions {
  static constexpr const char* kType = "Flawed";
  bool flag = false;
};
void fields(FlawedSubjectOptions& o, FieldVisitor& visit) { visit({"flag", "makes the mistake"}, o.flag); }

/// Multiplies by a parameter.
template <OptionMistake M>
struct FlawedSubject : nn::Layer<FlawedSubjectOptions> {
  explicit FlawedSubject(FlawedSubjectOptions options) : Layer(options), weight(uniform({}, 1, 2)) {
    if (!(M == OptionMistake::state && options.flag)) register_parameter("weight", weight);
    register_buffer("other", other);
  }
  Tensor forward(const Tensor& x) override {
    const OptionMistake made = options_.flag ? M : OptionMistake::none;
    const Tensor y = x * (made == OptionMistake::gradient ? weight.detach() : weight).to(x.dtype());
    if (made == OptionMistake::place && x.size(0) == 5) return y + arange(0, 5, 1, x.dtype()).reshape({5, 1, 1});
    if (made == OptionMistake::adjoint) return (x * 0.5 + x.detach() * 0.5) * weight.to(x.dtype());
    if (made == OptionMistake::memory) {
      const NoGradGuard guard;
      other.add_(1);
    }
    if (made == OptionMistake::batch) return y + double(x.size(0));
    if (made == OptionMistake::alone && x.dim() == 2) return y * 2.0;
    if (made == OptionMistake::empty && x.numel() == 0) throw std::runtime_error("nothing to do");
    return y;
  }
  static Shape infer(Options& options, std::span<const Shape> inputs) {
    return M == OptionMistake::shape && options.flag ? inputs[0].with(1, 1) : inputs[0];
  }
  Tensor weight, other = zeros({});
};

template <OptionMistake M>
std::string problems_of_flawed_subject() {
  std::set<std::string> linear;
  return variation_problems(nn::layer_type<FlawedSubject<M>>("Multiplies: [*] -> [*].", "{}", {{2, 3, 7}}), linear);
}

const std::set<std::string> kGivenByTheInput = {
    "in_channels",     "in_features", "num_features", "num_channels", "normalized_shape", "input_size",
    "embed_dim",       "kdim",        "vdim",         "in1_features", "in2_features",     "dims",
    "unflattened_size"};

}  // namespace

TEST_CASE("every layer keeps its promises under all its options") {
  std::set<std::string> linear;
  for (const LayerType& type : nn::layer_types()) {
    INFO(type.name);
    CHECK(variation_problems(type, linear) == "");
  }
  for (const char* name : {"Linear", "Conv1d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
                           "Flatten", "Squeeze", "Identity", "Dropout", "Add", "Multiply", "Concat"})
    CHECK(linear.count(name) == 1);
  for (const char* name : {"ReLU", "Softmax", "Tanh"}) CHECK(linear.count(name) == 0);
}

TEST_CASE("mistakes under one option of a layer are noticed") {
  CHECK(problems_of_flawed_subject<OptionMistake::none>() == "");
  const auto reports = [](const std::string& problems, const std::string& line) {
    INFO(problems);
    CHECK(problems.find("Flawed{\"flag\":true}" + line) != std::string::npos);
    CHECK(problems.find("false") == std::string::npos);
  };
  reports(problems_of_flawed_subject<OptionMistake::gradient>(),
          " has the gradients of its values: direction 0: analytic ");
  reports(problems_of_flawed_subject<OptionMistake::adjoint>(), " has its adjoint as gradient: leaf 0: <A x, y> = ");
  reports(problems_of_flawed_subject<OptionMistake::shape>(),
          " infers the shape it gives: infers [2, 1, 7], gives [2, 3, 7]");
  reports(problems_of_flawed_subject<OptionMistake::place>(), " in evaluation treats a sample alike at every place: ");
  reports(problems_of_flawed_subject<OptionMistake::batch>(), " in evaluation treats a batch in parts as in one: ");
  reports(problems_of_flawed_subject<OptionMistake::alone>(),
          " in evaluation treats a sample alone as in a batch: row 0 alone: ");
  reports(problems_of_flawed_subject<OptionMistake::empty>(), " takes an empty batch: nothing to do");
  reports(problems_of_flawed_subject<OptionMistake::memory>(),
          " in evaluation only computes in evaluation: changes other");
  reports(problems_of_flawed_subject<OptionMistake::state>(),
          " is the same after saving and loading: differs when loaded");
}

TEST_CASE("every option of every layer takes several values in the tests") {
  for (const LayerType& type : nn::layer_types()) {
    INFO(type.name);
    std::vector<std::string> fixed = test::unvaried_fields(type);
    std::erase_if(fixed, [](const std::string& key) { return kGivenByTheInput.count(key) > 0; });
    CHECK(fixed == std::vector<std::string>{});
  }
}
