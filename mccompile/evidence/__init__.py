"""What can be checked of generated code without mccompile: certificates, and the programs that check them.

In: a package and what the passes remember.
Out: certificates as JSON, programs that check them alone, and a page.
First: `folder.py`.
"""
