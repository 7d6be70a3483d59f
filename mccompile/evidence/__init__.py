"""What can be checked of generated code without mccompile: certificates, and the programs that check them."""
