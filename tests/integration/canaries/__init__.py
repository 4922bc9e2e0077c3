"""J-11: canaries wherever a secret may be, looked for in every byte that Duetick writes."""
