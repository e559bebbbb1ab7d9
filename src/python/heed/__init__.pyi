"""The Transformer on ordinary CPUs: translate, generate, classify, embed, train.

    import heed
    model = heed.load("models/en-de")
    print(model.translate("Good morning. How are you?", beam=4))

Whatever takes a str also takes a list of them, and then gives a list: many at once are much faster than
one after the other, and an answer does not depend on what else is asked. A model may be used from several
threads; the interpreter is free while Heed works, and Ctrl-C ends the wait. Options that are not given are
as the model's own files say.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

__version__: str

class Error(RuntimeError):
    """Something that Heed could not do. A mistake in how a function is called is a TypeError."""

    code: Literal["invalid_argument", "not_found", "corrupt_file", "unsupported", "out_of_memory", "cancelled", "internal"]
    hint: str  # what to do about it, as one line; "" when there is nothing to add

class _LoadOptions(TypedDict, total=False):
    threads: int  # 0: every CPU this process may use
    kv_memory_bytes: int  # for keys and values of growing texts, at most
    batch_tokens: int  # rows of one run of the model while texts grow, at most
    max_sequences: int  # texts (beams counted) that grow at the same time

class _GenerateOptions(TypedDict, total=False):
    greedy: bool  # the likeliest token each time
    beam: int  # texts to follow at once
    nbest: int  # answers; more than `beam` need more beams, and get them
    length_penalty: float
    length_penalty_rule: Literal["power", "gnmt"]
    early_stopping: Literal["no", "yes", "never"] | bool
    min_new_tokens: int
    max_new_tokens: int
    no_repeat_ngram: int
    repetition_penalty: float
    stop: str | Iterable[str]  # end a text, and are not part of it
    banned: str | Iterable[str]  # must not occur
    required: str | Iterable[str]  # must occur (with a beam)
    sample: bool  # draw tokens; implied by the four below
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int
    prefix: str  # how the answer begins
    source_language: str  # of multilingual models
    target_language: str

class _TranslateOptions(_GenerateOptions, total=False):
    source_prefix: str  # before every sentence: "translate English to German: "
    split_sentences: bool

class _EmbedOptions(TypedDict, total=False):
    pooling: Literal["mean", "first", "last"]
    normalize: bool
    long_text: Literal["truncate", "chunks"]
    max_tokens: int

class _ScoreOptions(TypedDict, total=False):
    window: int
    stride: int
    begin: bool
    end: bool

class Translation:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def alternatives(self) -> list[str]: ...  # the n best; the first is `text`
    @property
    def scores(self) -> list[float]: ...  # theirs
    @property
    def sentences(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Answer:
    @property
    def text(self) -> str: ...
    @property
    def ids(self) -> list[int]: ...  # all: the prompt or the decoder's start first
    @property
    def new_tokens(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def finish(self) -> Literal["end", "stop", "length"]: ...

class Result:
    @property
    def text(self) -> str: ...  # of the best answer
    @property
    def answers(self) -> list[Answer]: ...  # best first
    @property
    def input_tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Stream(Iterator[str]):
    """The pieces of a text while it grows. When it goes, the generation ends."""

    def __iter__(self) -> Stream: ...
    def __next__(self) -> str: ...
    def result(self) -> Result: ...  # waits for the end

class Classified:
    @property
    def label(self) -> int: ...  # -1: of regression, or there was no token
    @property
    def name(self) -> str: ...
    @property
    def probabilities(self) -> list[float]: ...
    @property
    def logits(self) -> list[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Scored:
    @property
    def log_probability(self) -> float: ...
    @property
    def perplexity(self) -> float: ...
    @property
    def ids(self) -> list[int]: ...
    @property
    def token_scores(self) -> list[float]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...

class Tokens:
    @property
    def ids(self) -> list[int]: ...
    @property
    def pieces(self) -> list[str]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...  # characters of the text, [begin, end)
    def __len__(self) -> int: ...

class Info:
    @property
    def model_type(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def weight_type(self) -> str: ...
    @property
    def flops_per_token(self) -> float: ...
    @property
    def settings(self) -> dict[str, Any]: ...

class Model:
    @property
    def folder(self) -> str: ...
    @property
    def family(self) -> Literal["encoder_decoder", "encoder_only", "decoder_only"]: ...
    @property
    def head(self) -> str: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def can_generate(self) -> bool: ...
    def info(self) -> Info: ...
    @overload
    def translate(self, texts: str, **options: Unpack[_TranslateOptions]) -> Translation: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Unpack[_TranslateOptions]) -> list[Translation]: ...
    @overload
    def generate(self, prompts: str, **options: Unpack[_GenerateOptions]) -> Result: ...
    @overload
    def generate(self, prompts: Iterable[str], **options: Unpack[_GenerateOptions]) -> list[Result]: ...
    def stream(self, prompt: str, **options: Unpack[_GenerateOptions]) -> Stream: ...
    @overload
    def classify(self, texts: str | tuple[str, str]) -> Classified: ...
    @overload
    def classify(self, texts: Iterable[str | tuple[str, str]]) -> list[Classified]: ...
    # A numpy.ndarray of float32, [width] or [texts, width]; where there is no numpy, lists of float.
    def embed(self, texts: str | Iterable[str], **options: Unpack[_EmbedOptions]) -> Any: ...
    # Of encoder-decoder models, pairs: the source and the target that is scored.
    @overload
    def score(self, texts: str | tuple[str, str], **options: Unpack[_ScoreOptions]) -> Scored: ...
    @overload
    def score(self, texts: Iterable[str | tuple[str, str]], **options: Unpack[_ScoreOptions]) -> list[Scored]: ...
    def tokenize(self, text: str, *, special_tokens: bool = ...) -> Tokens: ...
    def detokenize(self, ids: Iterable[int], *, skip_special_tokens: bool = ...) -> str: ...

class TrainProgress:
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def tokens_per_second(self) -> float: ...
    @property
    def remaining_seconds(self) -> float: ...
    @property
    def epoch(self) -> int: ...

class TrainResult:
    @property
    def folder(self) -> str: ...  # to load()
    @property
    def steps(self) -> int: ...
    @property
    def finished(self) -> bool: ...  # False: stopped; the same call goes on
    @property
    def seconds(self) -> float: ...
    @property
    def tokens(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def validation(self) -> dict[str, float]: ...
    @property
    def best_metric(self) -> float | None: ...
    @property
    def best_step(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def planned_bytes(self) -> int: ...
    @property
    def peak_rss_bytes(self) -> int: ...

def load(folder: str | PathLike[str], **options: Unpack[_LoadOptions]) -> Model:
    """A model folder in Hugging Face's layout."""

def train(
    recipe: str | PathLike[str],
    *,
    set: Mapping[str, Any] = ...,  # {"train.steps": 9}, over the recipe
    out: str | PathLike[str] | None = ...,  # the folder to write; None: as the recipe says
    seed: int | None = ...,
    memory: int | str | None = ...,  # the most to use: bytes, or "4GB"
    threads: int = ...,
    progress: Callable[[TrainProgress], bool | None] | None = ...,  # after every step; False: save and return
    note: Callable[[str], None] | None = ...,  # a line about what is going on
) -> TrainResult:
    """Trains by a recipe. The same again goes on from the last checkpoint."""
