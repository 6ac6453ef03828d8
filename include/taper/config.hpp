#pragma once

#include <string>

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

/// Models described in JSON.
namespace taper {

/// The model that `text` describes: a "model" object with "input" and "layers", or a whole training config, of which
/// only the model is read. Its parameters are named as PyTorch names them and drawn from the process's random numbers
/// in the order of the layers, so a seed gives the same model as the same layers made in C++. Layers of your own are
/// known after `nn::register_layer`. Errors: `ErrorKind::config` with everything that is wrong, a sentence and a line
/// each:
/// `/layers/2/kernal_size (line 14): unknown key; did you mean kernel_size?`.
Shared<nn::Module> model_from_json(const std::string& text);

/// The same for a file. Errors: also `ErrorKind::io` when it cannot be read.
Shared<nn::Module> model_from_file(const std::string& path);

}  // namespace taper

#pragma GCC visibility pop
