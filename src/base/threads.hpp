#pragma once

namespace taper::threads {

/// How many threads a kernel may use at most; `taper::set_num_threads` sets it.
int max_threads() noexcept;
void set_max_threads(int n) noexcept;

}  // namespace taper::threads
