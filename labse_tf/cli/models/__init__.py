"""Commands that write model dirs, or check one."""
