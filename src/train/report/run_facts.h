// What a report says about the machine and the sources of a training.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heed {

using RunFacts = std::vector<std::pair<std::string, std::string>>;  // name and value, to be shown

// Heed's version, CPU, memory and operating system.
RunFacts machine_facts(int threads);

// The commit that is checked out in the Git repository around `folder`, with its branch:
// "1a2b3c4d5e6f (main)". Empty: no repository, or one of an unknown form. Files that differ from the
// commit are not noticed.
std::string git_revision(const std::string& folder);

}  // namespace heed
