#include "cli/verb.hpp"

namespace taper::cli {

std::span<const Verb> verbs() {
  static const Verb all[] = {kTrain, kEval, kPredict, kRun, kSummary, kLayers, kEnv};
  return all;
}

}  // namespace taper::cli
