#include "taper/nn/shape.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"
#include "ops/shape_rules.hpp"
#include "spatial.hpp"

namespace taper::nn {

// --- layers ---------------------------------------------------------------------------------------------------------

Flatten::Flatten(FlattenOptions options) : Layer(options) {}
Squeeze::Squeeze(SqueezeOptions options) : Layer(options) {}
Identity::Identity(IdentityOptions options) : Layer(options) {}

Shape Flatten::infer(Options& options, std::span<const Shape> inputs) {
  return flattened_shape(inputs[0], options.start_dim, options.end_dim);
}

Shape Squeeze::infer(Options& options, std::span<const Shape> inputs) {
  if (inputs[0].rank() > 0 && normalize_dim("squeeze", options.dim, inputs[0].rank()) == 0)
    fail(ErrorKind::config, "squeeze: dim is the batch: expected a dimension after it, got ", options.dim, " for ",
         batched_text(inputs[0]));
  return squeezed_shape(inputs[0], options.dim);
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(FlattenOptions& o, FieldVisitor& visit) {
  visit({"start_dim", "first dimension to join"}, o.start_dim);
  visit({"end_dim", "last dimension to join"}, o.end_dim);
}
void fields(SqueezeOptions& o, FieldVisitor& visit) { visit({"dim", "the dimension to remove"}, o.dim); }
void fields(IdentityOptions&, FieldVisitor&) {}

// --- catalogue ------------------------------------------------------------------------------------------------------

std::vector<LayerType> shape_layers() {
  return {
      layer_type<Flatten>("Joins neighbouring dimensions into one: [N, C, L] -> [N, C L].", R"({"start_dim": 1})",
                          {{2, 3, 5}}),
      layer_type<Squeeze>("Removes a dimension of extent 1: [N, C, 1] -> [N, C].", R"({"dim": 2})", {{2, 3, 1, 5}}),
      layer_type<Identity>("Gives back its input: [*] -> [*].", "{}", {{2, 3, 5}}),
  };
}

}  // namespace taper::nn
