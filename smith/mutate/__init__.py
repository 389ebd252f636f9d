"""Small faults planted in a reference solution: one hunk taken back, or one place of a kernel made wrong.

What hidden tests do with them says how much they see. Everything here is trees and text; running is validation's.
"""
