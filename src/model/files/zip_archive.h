// The entries of a ZIP archive, as PyTorch writes it: stored, not compressed, so that they are used
// where they are. ZIP64 is read too. Format: PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct ZipEntry {
  std::string_view name;             // "archive/data/0"
  std::span<const std::byte> bytes;  // the content
};

// All entries but folders, sorted by name; they borrow `file`. `where` names it in messages. Throws
// corrupt_file for what contradicts itself, unsupported for compressed and encrypted entries.
// Checksums are not verified: that would read all of a file of which little may be needed.
std::vector<ZipEntry> read_zip_archive(std::span<const std::byte> file, const std::string& where);

// The entry of that name, or null.
const ZipEntry* find_entry(std::span<const ZipEntry> sorted, std::string_view name);

}  // namespace heed
