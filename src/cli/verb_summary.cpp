#include <cstdio>
#include <map>

#include "base/checked.hpp"
#include "cli/common.hpp"
#include "cli/failure.hpp"
#include "cli/layer_facts.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"

namespace taper::cli {

namespace {

std::string without_batch(const Shape& shape) { return to_string(shape.slice(1, shape.rank())); }

std::string counted(const std::optional<std::int64_t>& n) { return !n ? "over 2^63" : *n == 0 ? "-" : grouped(*n); }

/// "5.8 KiB".
std::string bytes_text(std::optional<std::int64_t> numbers) {
  if (!numbers) return "over 2^63 bytes";
  double size = double(*numbers) * 4;
  const char* unit = "bytes";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.*f %s", unit[0] == 'b' ? 0 : 1, size, unit);
  return text;
}

/// The rows of one model, with what is carried from layer to layer.
class Summary {
 public:
  explicit Summary(const config::ModelSpec& model)
      : table_({"layer", "type", "output", "parameters", "mult-adds", "field", "sees"}) {
    std::map<std::string, Value> inputs;
    for (const config::NamedOutline& input : model.inputs) {
      const Shape& shape = input.outline.shape;
      const ReceptiveField field(shape);
      table_.add({input.name, "", without_batch(shape), "", "", field.to_string(), ""});
      inputs.insert_or_assign(input.name, Value{shape, field});
    }
    add_layers(model.layers, "", std::move(inputs));
  }

  std::string to_string() const {
    return cat(table_.to_string(), "\nparameters   ", parameters_ ? grouped(*parameters_) : "over 2^63", " (",
               bytes_text(parameters_), " as float32)\nmult-adds    ",
               multiply_adds_ ? grouped(*multiply_adds_) : "over 2^63", " a sample\nactivations  ",
               activations_ ? grouped(*activations_) : "over 2^63", " a sample (", bytes_text(activations_),
               " as float32)\n");
  }

 private:
  struct Value {
    Shape shape;
    ReceptiveField field;
  };

  /// `values` holds the inputs; what the layers give comes to it.
  std::map<std::string, Value> add_layers(const std::vector<config::LayerSpec>& layers, const std::string& prefix,
                                          std::map<std::string, Value> values) {
    for (const config::LayerSpec& layer : layers) {
      std::vector<Shape> shapes;
      std::vector<ReceptiveField> fields;
      for (const std::string& name : layer.inputs) {
        const Value& value = values.at(name);
        shapes.push_back(value.shape);
        fields.push_back(value.field);
      }
      if (!layer.type) {
        add_container(layer, prefix, values);
        continue;
      }
      const Value& value = values.insert_or_assign(layer.name, add_layer(layer, prefix, fields, shapes)).first->second;
      for (const config::NamedOutline& output : layer.further)
        values.insert_or_assign(layer.name + "." + output.name, Value{output.outline.shape, value.field});
    }
    return values;
  }

  /// A nested Sequential or Graph: its layers, and what it gives.
  void add_container(const config::LayerSpec& layer, const std::string& prefix, std::map<std::string, Value>& values) {
    table_.add({prefix + layer.name, layer.type_name(), without_batch(layer.output), "", "", "", ""});
    const std::vector<std::string> names = layer.inner_names();
    std::map<std::string, Value> inputs;
    for (std::size_t i = 0; i < names.size(); ++i) inputs.insert_or_assign(names[i], values.at(layer.inputs[i]));
    const auto inside = add_layers(layer.layers, prefix + layer.name + ".", std::move(inputs));
    const std::string last = layer.layers.empty() ? names[0] : layer.layers.back().name;
    values.insert_or_assign(layer.name, inside.at(layer.outputs.empty() ? last : layer.outputs[0]));
    for (const config::NamedOutline& output : layer.further)
      values.insert_or_assign(layer.name + "." + output.name, inside.at(output.name));
  }

  Value add_layer(const config::LayerSpec& layer, const std::string& prefix, const std::vector<ReceptiveField>& fields,
                  const std::vector<Shape>& shapes) {
    const auto parameters = parameter_count(layer), products = multiply_adds(layer, shapes);
    const Value value{layer.output, ReceptiveField(layer, fields, shapes)};
    table_.add({prefix + layer.name, cat(layer.type->name, '(', changed_options(layer), ')'),
                without_batch(layer.output), counted(parameters), counted(products), value.field.to_string(),
                coverage(layer, shapes[0])});
    add_to(parameters_, parameters);
    add_to(multiply_adds_, products);
    add_to(activations_, layer.output.numel());
    return value;
  }

  static void add_to(std::optional<std::int64_t>& sum, std::optional<std::int64_t> more) {
    sum = sum && more ? checked::add(*sum, *more) : std::nullopt;
  }

  Table table_;
  std::optional<std::int64_t> parameters_ = 0, multiply_adds_ = 0, activations_ = 0;
};

class SummaryCommand final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("CONFIG", "a model file, or a config with a model in it", config_);
    arguments.texts({"--set", "KEY=VALUE", "changes a value of the config, as in model.layers[0].padding=1"}, set_);
  }

  int run() override {
    const config::LoadedModel loaded = read_model(config_, parse_overrides("summary", set_));
    const bool has_rows = !loaded.model.inputs.empty();
    if (has_rows) print(Summary(loaded.model).to_string());
    if (loaded.model.complete && loaded.errors.empty()) return kDone;
    say_errors(loaded);
    return kUsage;
  }

 private:
  std::string config_;
  std::vector<std::string> set_;
};

}  // namespace

const Verb kSummary = {"summary", "shows a model's layers: shapes, parameters, work, what pools see and drop",
                       R"(  taper summary forum.json
  taper summary forum.json --set model.layers[2].kernel_size=5

field is how many positions of the input one result sees; sees is how many of its input's positions a window layer
looks at, and how many it drops at the end.
)",
                       make_command<SummaryCommand>};

}  // namespace taper::cli
