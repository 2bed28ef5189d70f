"""Codecs of telephony, radio and the internet, and Lyra: their settings as rows, and how each is driven.

All are stateless from call to call and may be shared by threads (`thread_safe`).
"""
