#include "cli/layer_facts.hpp"

#include <algorithm>
#include <map>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "base/resample.hpp"
#include "cli/sequence_facts.hpp"
#include "taper/nn/registry.hpp"

namespace taper::cli {

namespace {

// Longer dimensions are not followed place by place.
constexpr std::int64_t kLongest = 1 << 20;

struct OptionCollector final : FieldVisitor {
  std::map<std::string, Value> values;
  std::vector<std::string> order;
  void visit(const Field& field, FieldAccess& access) override {
    values[field.key] = access.get();
    order.push_back(field.key);
  }
};

OptionCollector collect(const nn::LayerType* type, void* options) {
  OptionCollector collector;
  if (type) type->visit(options, collector);
  return collector;
}

OptionCollector options_of(const config::LayerSpec& layer) { return collect(layer.type, layer.options.get()); }

std::int64_t integer(const OptionCollector& options, const char* key, std::int64_t otherwise) {
  const auto it = options.values.find(key);
  const std::int64_t* number = it == options.values.end() ? nullptr : it->second.get<std::int64_t>();
  return number ? *number : otherwise;
}

bool boolean(const OptionCollector& options, const char* key) {
  const auto it = options.values.find(key);
  const bool* value = it == options.values.end() ? nullptr : it->second.get<bool>();
  return value && *value;
}

/// One number for each dimension from an option that is a number, a list or neither.
std::vector<std::int64_t> sizes(const OptionCollector& options, const char* key, std::size_t rank,
                                const std::vector<std::int64_t>& otherwise) {
  const auto it = options.values.find(key);
  if (it == options.values.end()) return otherwise;
  if (const auto* number = it->second.get<std::int64_t>()) return std::vector<std::int64_t>(rank, *number);
  const auto* list = it->second.get<Value::List>();
  if (!list || list->size() != rank) return otherwise;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto* number = (*list)[i].get<std::int64_t>();
    out.push_back(number ? *number : otherwise[i]);
  }
  return out;
}

bool is_windowed(const OptionCollector& options) { return options.values.count("kernel_size") > 0; }
bool has_output_size(const OptionCollector& options) { return options.values.count("output_size") > 0; }
bool is_adaptive(const OptionCollector& options) { return has_output_size(options) && !is_windowed(options); }
bool is_convolution(const OptionCollector& options) {
  return is_windowed(options) && options.values.count("out_channels") > 0;
}
bool is_transposed(const OptionCollector& options) { return options.values.count("output_padding") > 0; }
/// The windows of these lie on the output.
bool is_inverse(const OptionCollector& options) {
  return is_transposed(options) || (has_output_size(options) && is_windowed(options));
}
bool is_padding(const OptionCollector& options) { return options.values.count("padding") > 0 && !is_windowed(options); }
bool is_resizing(const OptionCollector& options) { return options.values.count("scale_factor") > 0; }
bool is_linear(const OptionCollector& options) { return options.values.count("out_features") > 0; }
bool is_bilinear(const OptionCollector& options) { return options.values.count("in2_features") > 0; }
bool is_table(const OptionCollector& options) { return options.values.count("num_embeddings") > 0; }
bool is_norm_over_places(const nn::LayerType& type, const OptionCollector& options) {
  return type.name.starts_with("InstanceNorm") || options.values.count("num_groups") > 0 ||
         options.values.count("normalized_shape") > 0;
}

/// One side's padding of each dimension; an average pool may give the two as a pair.
std::vector<std::int64_t> padding_of(const OptionCollector& options, std::size_t rank, std::size_t side) {
  std::vector<std::int64_t> amounts = sizes(options, "padding", rank, std::vector<std::int64_t>(rank, 0));
  const auto it = options.values.find("padding");
  const auto* list = it == options.values.end() ? nullptr : it->second.get<Value::List>();
  for (std::size_t i = 0; list && i < std::min(rank, list->size()); ++i)
    if (const auto* pair = (*list)[i].get<Value::List>()) amounts[i] = *pair->at(side).get<std::int64_t>();
  return amounts;
}

/// How a layer's windows slide, one for each spatial dimension.
std::vector<Window1d> windows_of(const OptionCollector& options, std::size_t rank) {
  const std::vector<std::int64_t> ones(rank, 1);
  const auto kernel = sizes(options, "kernel_size", rank, ones), stride = sizes(options, "stride", rank, kernel);
  const auto dilation = sizes(options, "dilation", rank, ones);
  const auto before = padding_of(options, rank, 0), after = padding_of(options, rank, 1);
  std::vector<Window1d> windows;
  for (std::size_t i = 0; i < rank; ++i)
    windows.push_back({.kernel = kernel[i],
                       .stride = stride[i],
                       .padding_left = before[i],
                       .padding_right = after[i],
                       .dilation = dilation[i],
                       .ceil_mode = boolean(options, "ceil_mode")});
  const auto it = options.values.find("padding");
  const std::string* word = it == options.values.end() ? nullptr : it->second.get<std::string>();
  if (word && *word == "same") pad_same("summary", windows);
  return windows;
}

/// How far a padding layer moves the input's first element, one number for each spatial dimension.
std::vector<std::int64_t> left_sides(const OptionCollector& options, const Shape& input, const Shape& output) {
  const std::size_t rank = std::size_t(std::max(0, input.rank() - 2));
  std::vector<std::int64_t> left(rank, 0);
  const Value& padding = options.values.at("padding");
  // Pairs, the last dimension first; a layer may pad fewer dimensions than there are.
  const auto* list = padding.get<Value::List>();
  for (std::size_t d = 0; d < rank; ++d) {
    if (!list && input[int(d) + 2] == output[int(d) + 2]) continue;
    const std::size_t pair = 2 * (rank - 1 - d);
    const Value* value = list ? (pair < list->size() ? &(*list)[pair] : nullptr) : &padding;
    if (value) left[d] = *value->get<std::int64_t>();
  }
  return left;
}

bool is_resizing_by(const OptionCollector& options, std::string_view mode) {
  return is_resizing(options) && *options.values.at("mode").get<std::string>() == mode;
}

/// How a layer resizes its dimensions, as far as the sizes tell it.
std::vector<Resampling> resamplings(const OptionCollector& options, const Shape& input, const Shape& output) {
  const std::string mode = *options.values.at("mode").get<std::string>();
  Resampling::Rule rule = boolean(options, "align_corners") ? Resampling::Rule::aligned : Resampling::Rule::linear;
  if (mode == "nearest") rule = Resampling::Rule::nearest;
  if (mode == "nearest-exact") rule = Resampling::Rule::nearest_exact;
  std::vector<Resampling> axes;
  for (int d = 2; d < input.rank(); ++d) axes.push_back({.in = input[d], .out = output[d], .rule = rule});
  return axes;
}

/// What every output reads along one dimension, or nothing for layers that do not keep places.
class PlacesAlong {
 public:
  PlacesAlong(const OptionCollector& options, const Shape& input, const Shape& output)
      : rank_(std::size_t(std::max(0, input.rank() - 2))),
        adaptive_(is_adaptive(options) || is_resizing_by(options, "area")),
        cubic_(is_resizing_by(options, "bicubic")),
        inverse_(is_inverse(options)),
        input_(input),
        output_(output) {
    if (!adaptive_ && is_windowed(options)) windows_ = windows_of(options, rank_);
    windowed_ = is_adaptive(options) || is_windowed(options);
    known_ = (windowed_ || is_padding(options) || is_resizing(options)) && input.rank() == output.rank();
    if (known_ && is_padding(options)) left_ = left_sides(options, input, output);
    if (known_ && is_resizing(options) && !adaptive_) resampled_ = resamplings(options, input, output);
    for (std::size_t d = 0; d < rank_; ++d) known_ = known_ && length(d) <= kLongest && outputs(d) <= kLongest;
  }

  bool known() const { return known_; }
  bool windowed() const { return windowed_; }
  std::size_t rank() const { return rank_; }
  std::int64_t length(std::size_t d) const { return input_[int(d) + 2]; }
  std::int64_t outputs(std::size_t d) const { return output_[int(d) + 2]; }
  WindowBounds at(std::size_t d, std::int64_t i) const {
    if (!left_.empty()) {
      // What lies in the padding counts for the edge beside it, so that it makes no field wider.
      const std::int64_t j = std::clamp<std::int64_t>(i - left_[d], 0, length(d) - 1);
      return {j, j + 1, j, j + 1};
    }
    if (!resampled_.empty()) return cubic_ ? read(CubicResampling{resampled_[d]}.at(i)) : read(resampled_[d].at(i));
    if (!inverse_)
      return adaptive_ ? adaptive_bounds(length(d), outputs(d), i) : window_bounds(windows_[d], length(d), i);
    // One window for each input position.
    const IndexRange over = windows_over(windows_[d], length(d), i);
    return {over.first, over.last, over.first, over.last};
  }

 private:
  template <class Source>
  static WindowBounds read(const Source& source) {
    return {source.first, source.second + 1, source.first, source.second + 1};
  }

  std::size_t rank_;
  bool adaptive_, cubic_, inverse_, windowed_ = false, known_ = false;
  Shape input_, output_;
  std::vector<Window1d> windows_;
  std::vector<std::int64_t> left_;
  std::vector<Resampling> resampled_;
};

/// The size of a convolution's kernel.
std::optional<std::int64_t> taps(const OptionCollector& options, int rank) {
  std::optional<std::int64_t> n = 1;
  const std::size_t spatial = std::size_t(std::max(0, rank - 2));
  for (const std::int64_t k : sizes(options, "kernel_size", spatial, std::vector<std::int64_t>(spatial, 1)))
    n = checked::mul(n, k);
  return n;
}

/// How many weights belong to one output of a linear layer or one output channel of a convolution; 0 for other layers.
std::optional<std::int64_t> weights_of_output(const OptionCollector& options, int rank) {
  if (is_bilinear(options))
    return checked::mul(integer(options, "in1_features", 0), integer(options, "in2_features", 0));
  if (is_linear(options)) return integer(options, "in_features", 0);
  if (!is_convolution(options)) return 0;
  return checked::mul(integer(options, "in_channels", 0) / integer(options, "groups", 1), taps(options, rank));
}

}  // namespace

std::string changed_options(const config::LayerSpec& layer) {
  if (!layer.type) return "";
  const Shared<void> defaults = layer.type->new_options();
  const OptionCollector given = options_of(layer), usual = collect(layer.type, defaults.get());
  std::string text;
  for (const std::string& key : given.order) {
    const std::string value = to_json(given.values.at(key));
    if (value != to_json(usual.values.at(key))) text += cat(text.empty() ? "" : ", ", key, '=', value);
  }
  return text;
}

std::optional<std::int64_t> parameter_count(const config::LayerSpec& layer) {
  if (!layer.type) {
    std::optional<std::int64_t> sum = 0;
    for (const config::LayerSpec& inner : layer.layers) sum = checked::add(sum, parameter_count(inner));
    return sum;
  }
  const OptionCollector options = options_of(layer);
  if (is_table(options))
    return checked::mul(integer(options, "num_embeddings", 0), integer(options, "embedding_dim", 0));
  if (!is_linear(options) && !is_convolution(options)) return layer.type->make(layer.options.get())->parameter_count();
  const std::int64_t outputs = integer(options, is_linear(options) ? "out_features" : "out_channels", 0);
  return checked::add(checked::mul(outputs, weights_of_output(options, layer.output.rank())),
                      boolean(options, "bias") ? outputs : 0);
}

std::optional<std::int64_t> multiply_adds(const config::LayerSpec& layer, std::span<const Shape> inputs) {
  if (reads_sequence(layer)) return sequence_products(layer, inputs);
  const Shape& input = inputs[0];
  const OptionCollector options = options_of(layer);
  if (!is_transposed(options))
    return checked::mul(layer.output.numel(), weights_of_output(options, layer.output.rank()));
  // Every input element is multiplied by the kernels to all output channels of its group.
  const std::int64_t reached = integer(options, "out_channels", 0) / integer(options, "groups", 1);
  return checked::mul(input.numel(), checked::mul(reached, taps(options, input.rank())));
}

ReceptiveField::ReceptiveField(const Shape& input) {
  for (int d = 2; d < input.rank(); ++d) {
    if (input[d] > kLongest) return;
    auto& axis = axes_.emplace_back();
    for (std::int64_t i = 0; i < input[d]; ++i) axis.push_back({i, i + 1});
    widths_.push_back(1);
  }
}

ReceptiveField::ReceptiveField(const config::LayerSpec& layer, std::span<const ReceptiveField> fields,
                               std::span<const Shape> shapes) {
  *this = fields.front();
  for (const ReceptiveField& other : fields.subspan(1)) {
    all_ = all_ || other.all_;
    for (std::size_t d = 0; d < std::min(widths_.size(), other.widths_.size()); ++d)
      widths_[d] = std::max(widths_[d], other.widths_[d]);
    const bool in_line = std::equal(axes_.begin(), axes_.end(), other.axes_.begin(), other.axes_.end(),
                                    [](const auto& a, const auto& b) { return a.size() == b.size(); });
    if (!in_line) axes_.clear();
    for (std::size_t d = 0; d < axes_.size(); ++d)
      for (std::size_t i = 0; i < axes_[d].size(); ++i) {
        axes_[d][i].first = std::min(axes_[d][i].first, other.axes_[d][i].first);
        axes_[d][i].last = std::max(axes_[d][i].last, other.axes_[d][i].last);
      }
  }
  if (!layer.type || widths_.empty()) return;
  const OptionCollector options = options_of(layer);
  const bool mixes_places = options.values.count("dim") > 0 && shapes[0] == layer.output && shapes[0].rank() > 2 &&
                            integer(options, "dim", 1) != 1 && integer(options, "dim", 1) != 1 - shapes[0].rank();
  if (is_linear(options) || reads_sequence(layer) || is_norm_over_places(*layer.type, options) ||
      (mixes_places && fields.size() == 1))
    all_ = true;
  const PlacesAlong windows(options, shapes[0], layer.output);
  if (!windows.known() || windows.rank() != axes_.size()) {
    // What is not followed place by place must at least have as many places as before.
    bool in_place = layer.output.rank() == shapes[0].rank();
    for (int d = 2; in_place && d < layer.output.rank(); ++d) in_place = layer.output[d] == shapes[0][d];
    if (!in_place) axes_.clear();
    return;
  }
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    std::vector<IndexRange> seen;
    widths_[d] = 0;
    for (std::int64_t i = 0; i < windows.outputs(d); ++i) {
      const WindowBounds bounds = windows.at(d, i);
      const auto& axis = axes_[d];
      const auto length = std::int64_t(axis.size());
      IndexRange range{0, 0};
      if (bounds.first < bounds.last)
        range = {axis[std::size_t(bounds.first)].first, axis[std::size_t(bounds.last - 1)].last};
      else  // nothing, but at its place among the others
        range.first = range.last = bounds.first < length ? axis[std::size_t(bounds.first)].first : axis.back().last;
      seen.push_back(range);
      widths_[d] = std::max(widths_[d], range.last - range.first);
    }
    axes_[d] = std::move(seen);
  }
}

std::string ReceptiveField::to_string() const {
  if (all_) return "all";
  std::string text;
  for (const std::int64_t width : widths_) text += cat(text.empty() ? "" : " x ", width);
  return text;
}

std::string coverage(const config::LayerSpec& layer, const Shape& input) {
  if (!layer.type) return "";
  const PlacesAlong windows(options_of(layer), input, layer.output);
  if (!windows.known() || !windows.windowed()) return "";
  std::string text;
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    std::int64_t seen = 0, end = 0;
    for (std::int64_t i = 0; i < windows.outputs(d); ++i) {
      const WindowBounds bounds = windows.at(d, i);
      if (bounds.last <= end) continue;
      seen += bounds.last - std::max(bounds.first, end);
      end = bounds.last;
    }
    const std::int64_t length = windows.length(d);
    text += cat(d == 0 ? "" : " x ", seen, " of ", length);
    if (end < length) text += cat(", tail ", length - end);
  }
  return text;
}

}  // namespace taper::cli
