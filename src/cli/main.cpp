#include "cli/output.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  taper::cli::prepare_streams();
  return taper::cli::run_program(argc > 1 ? std::vector<std::string>(argv + 1, argv + argc)
                                          : std::vector<std::string>());
}
