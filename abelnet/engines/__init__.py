"""The law where the data are: tables read in parts and folded by running states."""
