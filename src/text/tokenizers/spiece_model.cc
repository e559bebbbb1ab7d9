#include "text/tokenizers/spiece_model.h"

#include <sentencepiece_processor.h>

#include "heed/error.h"

// Exported by the library, but not declared in its headers.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace heed {
namespace {

void check(const sentencepiece::util::Status& status, const std::string& name) {
  if (!status.ok()) {
    throw Error(ErrorCode::corrupt_file,
                name + ": SentencePiece cannot load it: " + status.message());
  }
}

}  // namespace

void silence_sentencepiece() {
  constexpr int kFatal = 4;
  sentencepiece::logging::SetMinLogLevel(kFatal);
}

SpieceModel::SpieceModel(std::string bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {
  const SpieceProto proto = read_spiece_proto(bytes_, name_);
  types_.reserve(proto.pieces.size());
  for (const SpieceProto::Piece& piece : proto.pieces) {
    if (piece.type == PieceType::unknown) unknown_ = size();
    types_.push_back(piece.type);
  }
  silence_sentencepiece();
  processor_ = std::make_unique<sentencepiece::SentencePieceProcessor>();
  check(processor_->LoadFromSerializedProto(bytes_), name_);
  if (processor_->GetPieceSize() != size()) {
    throw Error(ErrorCode::corrupt_file, name_ + ": its number of pieces is out of range");
  }
}

SpieceModel::SpieceModel(SpieceModel&&) noexcept = default;
SpieceModel& SpieceModel::operator=(SpieceModel&&) noexcept = default;
SpieceModel::~SpieceModel() = default;

std::vector<SpieceModel::Token> SpieceModel::encode(std::string_view text) const {
  sentencepiece::ImmutableSentencePieceText result;
  check(processor_->Encode(text, result.mutable_proto()), name_);
  std::vector<Token> tokens;
  tokens.reserve(result.pieces_size());
  for (const auto& piece : result.pieces()) {
    tokens.push_back({static_cast<int32_t>(piece.id()), piece.piece(), piece.begin(), piece.end()});
  }
  return tokens;
}

std::vector<int> SpieceModel::encode_ids(std::string_view text) const {
  std::vector<int> ids;
  check(processor_->Encode(text, &ids), name_);
  return ids;
}

std::string SpieceModel::decode(const std::vector<std::string>& pieces) const {
  std::string text;
  check(processor_->Decode(pieces, &text), name_);
  return text;
}

std::string SpieceModel::piece(int32_t id) const { return processor_->IdToPiece(id); }
int32_t SpieceModel::find(std::string_view piece) const { return processor_->PieceToId(piece); }

}  // namespace heed
