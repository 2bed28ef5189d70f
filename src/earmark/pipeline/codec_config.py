"""The config of a codec run, which lives in `earmark.codecs.runs.config`."""

from earmark.codecs.runs.config import CodecConfig

__all__ = ["CodecConfig", "load_codec_config", "make_codec_config"]

load_codec_config = CodecConfig.load
make_codec_config = CodecConfig.make
